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

// upstream is how the proxy reaches the reference server.
type upstream string

const (
	overHTTP  upstream = "http"
	overStdio upstream = "stdio"
)

// report holds what was measured: by revision directly, and by revision and upstream through the proxy.
type report struct {
	direct  map[string]results
	through map[runKey]results
}

// runKey names one run through the proxy.
type runKey struct {
	revision string
	upstream upstream
}

func (k runKey) String() string { return k.revision + " over " + string(k.upstream) }

// rig has the programs that a run puts together.
type rig struct {
	suite      suite
	work       string
	server     string // the binary of the reference server
	proxy      string // the binary of the proxy; empty without one
	directOnly bool
}

func newRig(ctx context.Context, o options, work string) (*rig, error) {
	s, err := newSuite(o)
	if err != nil {
		return nil, err
	}
	r := &rig{suite: s, work: work, server: filepath.Join(work, "everything-server"), directOnly: o.directOnly}
	if err := harness.Build(ctx, referenceServer, r.server); err != nil {
		return nil, err
	}
	if o.directOnly {
		return r, nil
	}
	r.proxy, err = harness.BuildProxy(ctx, work)
	return r, err
}

// all makes every run, one after the other: several suites at once would disturb each other's timing.
func (r *rig) all(ctx context.Context) (report, error) {
	rep := report{direct: make(map[string]results), through: make(map[runKey]results)}
	for _, rev := range revisions {
		if err := r.revision(ctx, rev, rep); err != nil {
			return rep, fmt.Errorf("revision %s: %w", rev.name, err)
		}
	}
	return rep, nil
}

// revision tests one revision directly and through the proxy.
func (r *rig) revision(ctx context.Context, rev revision, rep report) error {
	direct, err := r.directly(ctx, rev)
	if err != nil {
		return fmt.Errorf("directly: %w", err)
	}
	rep.direct[rev.name] = direct
	if r.directOnly {
		return nil
	}
	for _, up := range []upstream{overHTTP, overStdio} {
		key := runKey{rev.name, up}
		got, err := r.throughProxy(ctx, rev, up)
		if err != nil {
			return fmt.Errorf("through the proxy %s: %w", key, err)
		}
		rep.through[key] = got
	}
	return nil
}

// directly runs the suite against the reference server itself. Each run has a server of its own: the suite changes what
// it offers.
func (r *rig) directly(ctx context.Context, rev revision) (results, error) {
	url, server, err := r.startServer(ctx, rev)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	return r.suite.run(ctx, rev, url, filepath.Join(r.work, "direct-"+rev.name))
}

// startServer starts the reference server over HTTP in the mode of the revision.
func (r *rig) startServer(ctx context.Context, rev revision) (string, *harness.Process, error) {
	addr, err := harness.FreeAddr()
	if err != nil {
		return "", nil, err
	}
	p, err := r.start(ctx, "server-"+rev.name, addr,
		r.server, "-http", addr, "-stateless="+strconv.FormatBool(rev.stateless))
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
func (r *rig) throughProxy(ctx context.Context, rev revision, up upstream) (got results, err error) {
	url, server, err := r.startServer(ctx, rev)
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	name := "proxy-" + rev.name + "-" + string(up)
	demoAddr, err := harness.FreeAddr()
	if err != nil {
		return nil, err
	}
	demo, err := r.start(ctx, name+"-remote", demoAddr, r.proxy, "demo-server", "--http", demoAddr)
	if err != nil {
		return nil, err
	}
	defer demo.Kill()
	config, err := r.writeConfig(name, rev, up, url, "http://"+demoAddr+"/mcp")
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
	return r.suite.run(ctx, rev, "http://"+addr+"/mcp", filepath.Join(r.work, name))
}

// writeConfig writes the configuration of a proxy whose first upstream keeps its names: the suite asks for names of
// tools, prompts and resources that are fixed.
func (r *rig) writeConfig(name string, rev revision, up upstream, url, demoURL string) (string, error) {
	reference := map[string]any{"tool_prefix": ""}
	if up == overHTTP {
		reference["type"], reference["url"] = "http", url
	} else {
		reference["command"], reference["args"] = r.server, []string{}
		// Over stdio the reference server speaks both eras; directly it is tested in that of the revision.
		if !rev.stateless {
			reference["protocol"] = "legacy"
		}
	}
	// A struct, because the order counts: the first of two owners of a URI has it.
	var servers struct {
		Reference map[string]any `json:"reference"`
		Child     map[string]any `json:"child"`
		Remote    map[string]any `json:"remote"`
	}
	servers.Reference = reference
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
