package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// referenceServer is the package of the server that offers what the suite asks for. It comes with the SDK.
const referenceServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// readyTimeout is how long a program may take until it serves.
const readyTimeout = time.Minute

// way is how the proxy reaches the reference server, or what the client is that goes through the proxy to a server of
// the suite.
type way string

const (
	overHTTP  way = "http"
	overStdio way = "stdio"

	legacyClient way = "legacy"
	modernClient way = "modern"
)

// kind tells the kinds of runs apart.
type kind string

const (
	// straight runs have the reference server in the era of the revision.
	straight kind = "straight"
	// crossed runs have it in the other era, so that the proxy translates all.
	crossed kind = "crossed"
	// asClient runs put the proxy between servers of the suite and a client of the SDK.
	asClient kind = "client"
)

// runKey names one run through the proxy.
type runKey struct {
	kind     kind
	revision string
	way      way
}

func (k runKey) String() string {
	switch k.kind {
	case crossed:
		return k.revision + " over " + string(k.way) + " to a server of the other era"
	case asClient:
		return "servers of " + k.revision + " for a " + string(k.way) + " client"
	}
	return k.revision + " over " + string(k.way)
}

// report holds what was measured: by revision directly, and by run through the proxy.
type report struct {
	direct  map[string]results
	through map[runKey]results
}

// rig has the programs that a run puts together.
type rig struct {
	suite      suite
	work       string
	server     string // the binary of the reference server
	proxy      string // the binary of the proxy; empty without one
	edge       string // the binary of the client with a proxy before it
	directOnly bool
}

func newRig(ctx context.Context, o options, work string) (*rig, error) {
	s, err := newSuite(o)
	if err != nil {
		return nil, err
	}
	r := &rig{
		suite: s, work: work, directOnly: o.directOnly,
		server: filepath.Join(work, "everything-server"), edge: filepath.Join(work, "edge"),
	}
	if err := harness.Build(ctx, referenceServer, r.server); err != nil {
		return nil, err
	}
	if o.directOnly {
		return r, nil
	}
	if err := harness.Build(ctx, "./test/conformance/edge", r.edge); err != nil {
		return nil, err
	}
	r.proxy, err = harness.BuildProxy(ctx, work)
	return r, err
}

// all makes every run, one after the other: several suites at once would disturb each other's timing.
func (r *rig) all(ctx context.Context) (report, error) {
	rep := report{direct: make(map[string]results), through: make(map[runKey]results)}
	for _, rev := range revisions {
		direct, err := r.directly(ctx, rev)
		if err != nil {
			return rep, fmt.Errorf("revision %s directly: %w", rev.name, err)
		}
		rep.direct[rev.name] = direct
	}
	if r.directOnly {
		return rep, nil
	}
	for _, key := range runs() {
		got, err := r.through(ctx, key)
		if err != nil {
			return rep, fmt.Errorf("through the proxy, %s: %w", key, err)
		}
		rep.through[key] = got
	}
	return rep, nil
}

// through makes one run through the proxy.
func (r *rig) through(ctx context.Context, key runKey) (results, error) {
	dir := filepath.Join(r.work, string(key.kind)+"-"+key.revision+"-"+string(key.way))
	if key.kind == asClient {
		command := r.edge + " -proxy " + r.proxy + " -client " + string(key.way)
		return r.suite.client(ctx, key.revision, command, dir)
	}
	return r.throughProxy(ctx, key, dir)
}

// directly runs the suite against the reference server itself. Each run has a server of its own: the suite changes what
// it offers.
func (r *rig) directly(ctx context.Context, rev revision) (results, error) {
	url, server, err := r.startServer(ctx, rev.name, rev.stateless)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	return r.suite.server(ctx, rev.name, url, filepath.Join(r.work, "direct-"+rev.name))
}

// startServer starts the reference server over HTTP, in the one era or the other.
func (r *rig) startServer(ctx context.Context, name string, stateless bool) (string, *harness.Process, error) {
	addr, err := harness.FreeAddr()
	if err != nil {
		return "", nil, err
	}
	p, err := r.start(ctx, "server-"+name, addr,
		r.server, "-http", addr, "-stateless="+strconv.FormatBool(stateless))
	return "http://" + addr + "/mcp", p, err
}

// start starts a program and waits until it listens on addr.
func (r *rig) start(ctx context.Context, name, addr string, argv ...string) (*harness.Process, error) {
	p, err := harness.Start(harness.Command{Name: name, Args: argv, Dir: r.work, Logs: r.work})
	if err != nil {
		return nil, err
	}
	err = p.Ready(ctx, readyTimeout, func(ctx context.Context) error { return harness.WaitListening(ctx, addr) })
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// throughProxy runs the suite against a proxy that has the reference server and two more behind it.
func (r *rig) throughProxy(ctx context.Context, key runKey, dir string) (got results, err error) {
	name := filepath.Base(dir)
	url, server, err := r.startServer(ctx, name, modernServer(key))
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	demoAddr, err := harness.FreeAddr()
	if err != nil {
		return nil, err
	}
	demo, err := r.start(ctx, name+"-remote", demoAddr, r.proxy, "demo-server", "--http", demoAddr)
	if err != nil {
		return nil, err
	}
	defer demo.Kill()
	config, err := r.writeConfig(name, key, url, "http://"+demoAddr+"/mcp")
	if err != nil {
		return nil, err
	}
	addr, err := harness.FreeAddr()
	if err != nil {
		return nil, err
	}
	proxy, err := harness.Start(harness.Command{
		Name: name, Args: []string{r.proxy, "serve", "--config", config, "--listen", addr}, Dir: r.work, Logs: r.work,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.Stop()) }()
	err = proxy.Ready(ctx, readyTimeout, func(ctx context.Context) error {
		return harness.WaitOK(ctx, "http://"+addr+"/readyz")
	})
	if err != nil {
		return nil, err
	}
	return r.suite.server(ctx, key.revision, "http://"+addr+"/mcp", dir)
}

// modernServer says which era the reference server speaks in a run.
func modernServer(key runKey) bool {
	return (key.kind == crossed) != revisionOf(key.revision).stateless
}

// writeConfig writes the configuration of a proxy whose first upstream keeps its names: the suite asks for names of
// tools, prompts and resources that are fixed.
func (r *rig) writeConfig(name string, key runKey, url, demoURL string) (string, error) {
	// A struct, because the order counts: the first of two owners of a URI has it.
	var servers struct {
		Reference map[string]any `json:"reference"`
		Child     map[string]any `json:"child"`
		Remote    map[string]any `json:"remote"`
	}
	servers.Reference = r.reference(key, url)
	servers.Child = map[string]any{"command": r.proxy, "args": []string{"demo-server"}, "tool_prefix": "child_"}
	servers.Remote = map[string]any{"type": "http", "url": demoURL, "tool_prefix": "remote_"}
	text, err := json.MarshalIndent(map[string]any{
		"mcpServers": servers,
		"proxy": map[string]any{
			"startup":   "strict",
			"naming":    map[string]any{"mode": "none"},
			"state_dir": filepath.Join(r.work, name+"-state"),
		},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.work, name+".json")
	return path, os.WriteFile(path, text, 0o600)
}

// reference is the configuration of the reference server. Over HTTP it speaks one era and the proxy finds out which; over
// stdio it speaks both, and gets the one that the run is about.
func (r *rig) reference(key runKey, url string) map[string]any {
	server := map[string]any{"tool_prefix": ""}
	if key.way == overHTTP {
		server["type"], server["url"] = "http", url
		if key.kind == straight {
			return server
		}
	} else {
		server["command"], server["args"] = r.server, []string{}
	}
	if server["protocol"] = "legacy"; modernServer(key) {
		server["protocol"] = "modern"
	} else if key.kind == crossed {
		// What an old server may ask for it hears when a connection begins, and the clients of the suite differ in that. The
		// suite also asks for input and never comes back: as long as such a call waits, nobody could tell whose the next
		// question of the same process is.
		server["sharing"] = "session"
	}
	return server
}
