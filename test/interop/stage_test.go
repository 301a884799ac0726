package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// readyTimeout is how long the proxy and its upstreams may take to start.
const readyTimeout = 2 * time.Minute

// stage is a running proxy with servers of others behind it.
type stage struct {
	url   string                     // of the proxy's aggregate
	npm   string                     // the folder with node_modules
	files string                     // the only folder that the file server shows
	web   string                     // the URL of server-everything
	gates *gates                     // where slow calls of the askers wait
	heard map[string]func() [][]byte // what servers that tell nothing of it were sent
}

// newStage starts all servers and a proxy before them, which everybody shares; the end of the test stops it, and the proxy must then end with exit code 0.
func newStage(t *testing.T) stage {
	t.Helper()
	npm := os.Getenv("MCP_PROXY_INTEROP")
	if npm == "" {
		t.Skip("MCP_PROXY_INTEROP does not name the folder of the npm packages; make interop sets it")
	}
	work := t.TempDir()
	s := stage{npm: npm, files: filepath.Join(work, "files"), gates: newGates(t), heard: make(map[string]func() [][]byte)}
	if err := os.Mkdir(s.files, 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := harness.BuildProxy(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	s.web = s.startEverything(t, work)
	s.url = startProxy(t, binary, work, s.writeConfig(t, work))
	return s
}

// startProxy starts the proxy and gives the URL of its aggregate once it is ready.
func startProxy(t *testing.T, binary, work, config string) string {
	t.Helper()
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := harness.Start(harness.Command{
		Name: "proxy", Args: []string{binary, "serve", "--config", config, "--listen", addr}, Dir: work, Logs: work,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the proxy's log:\n%s", p.Tail())
		}
	})
	err = p.Ready(t.Context(), readyTimeout, func(ctx context.Context) error {
		return harness.WaitOK(ctx, "http://"+addr+"/readyz")
	})
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + addr + "/mcp"
}

// writeConfig writes a configuration as a person would: commands through npx, URLs with their type.
func (s stage) writeConfig(t *testing.T, work string) string {
	t.Helper()
	npx := func(name string, args ...string) map[string]any {
		all := append([]string{"--offline", "--no", "--prefix", s.npm, "--", name}, args...)
		return map[string]any{"command": "npx", "args": all}
	}
	memory := npx("mcp-server-memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.jsonl")}
	child, childHeard := overhear(t, work, s.everything(t)...)
	web, webHeard := overhearWeb(t, s.web)
	s.heard["everythingchild"], s.heard["everythingweb"] = childHeard, webHeard
	return configure(t, work, map[string]any{
		"everything":      npx("mcp-server-everything"),
		"everythingchild": map[string]any{"command": "sh", "args": child},
		"everythingweb":   map[string]any{"type": "http", "url": web},
		"files":           npx("mcp-server-filesystem", s.files),
		"memory":          memory,
		"greeter":         map[string]any{"type": "http", "url": startGreeter(t, streamable) + "/mcp"},
		"oldgreeter":      map[string]any{"type": "sse", "url": startGreeter(t, legacySSE) + "/sse"},
		"askerchild":      s.askerChild(t, "askerchild", "modern"),
		"askeroldchild":   s.askerChild(t, "askeroldchild", "legacy"),
		"askerweb":        map[string]any{"type": "http", "url": startAsker(t, "askerweb", true, s.gates.url)},
		"askeroldweb":     map[string]any{"type": "http", "url": startAsker(t, "askeroldweb", false, s.gates.url)},
	}, map[string]any{})
}

// configure writes a configuration file and gives its path.
func configure(t *testing.T, work string, servers, settings map[string]any) string {
	t.Helper()
	settings["state_dir"], settings["startup_grace"] = filepath.Join(work, "state"), readyTimeout.String()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers, "proxy": settings}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "mcp-proxy.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// everything is the command of server-everything.
func (s stage) everything(t *testing.T) []string {
	t.Helper()
	node, err := harness.Node(s.npm)
	if err != nil {
		t.Fatal(err)
	}
	return []string{node, filepath.Join(s.npm, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")}
}

// askerChild has this binary as a server.
func (s stage) askerChild(t *testing.T, name, protocol string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{childServer: name, childGates: s.gates.url}
	return map[string]any{"command": self, "args": []string{}, "env": env, "protocol": protocol}
}

// startEverything starts server-everything over HTTP and gives its URL.
func (s stage) startEverything(t *testing.T, work string) string {
	t.Helper()
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	p, err := harness.Start(harness.Command{
		Name: "everything", Args: append(s.everything(t), "streamableHttp"), Env: []string{"PORT=" + port}, Dir: work, Logs: work,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	err = p.Ready(t.Context(), readyTimeout, func(ctx context.Context) error { return harness.WaitListening(ctx, addr) })
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + addr + "/mcp"
}

func streamable(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func legacySSE(server *mcp.Server) http.Handler {
	return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

// startGreeter serves the Go SDK's server with one tool over the transport and gives the base URL.
func startGreeter(t *testing.T, transport func(*mcp.Server) http.Handler) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	greet := func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		if in.Name == "" {
			return nil, nil, errors.New("nobody to greet")
		}
		text := &mcp.TextContent{Text: fmt.Sprintf("Hello, %s!", in.Name)}
		return &mcp.CallToolResult{Content: []mcp.Content{text}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets"}, greet)
	web := httptest.NewServer(transport(server))
	// The proxy is stopped first, as it is started later; its streams are then gone and Close does not wait.
	t.Cleanup(web.Close)
	return web.URL
}
