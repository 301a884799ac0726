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
	url   string          // of the proxy's aggregate
	npm   string          // the folder with node_modules
	files string          // the only folder that the file server shows
	cut   chan<- struct{} // lets a slow call of askeroldweb go on
}

// newStage starts everything; the end of the test stops it, and the proxy must then end with exit code 0.
func newStage(t *testing.T) stage {
	t.Helper()
	npm := os.Getenv("MCP_PROXY_INTEROP")
	if npm == "" {
		t.Skip("MCP_PROXY_INTEROP does not name the folder of the npm packages; make interop sets it")
	}
	work := t.TempDir()
	s := stage{npm: npm, files: filepath.Join(work, "files")}
	if err := os.Mkdir(s.files, 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := harness.BuildProxy(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	s.cut = cut
	s.url = startProxy(t, binary, work, s.writeConfig(t, work, cut))
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
func (s stage) writeConfig(t *testing.T, work string, cut <-chan struct{}) string {
	t.Helper()
	npx := func(name string, args ...string) map[string]any {
		all := append([]string{"--offline", "--no", "--prefix", s.npm, "--", name}, args...)
		return map[string]any{"command": "npx", "args": all}
	}
	memory := npx("mcp-server-memory")
	memory["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(work, "memory.jsonl")}
	everythingWeb := s.startEverything(t, work)
	config := map[string]any{
		"mcpServers": map[string]any{
			"everything":      npx("mcp-server-everything"),
			"everythingchild": npx("mcp-server-everything"),
			"files":           npx("mcp-server-filesystem", s.files),
			"memory":          memory,
			"greeter":         map[string]any{"type": "http", "url": startGreeter(t, streamable) + "/mcp"},
			"oldgreeter":      map[string]any{"type": "sse", "url": startGreeter(t, legacySSE) + "/sse"},
			// It asks on the stream of its session, which is then one client's.
			"everythingweb": map[string]any{"type": "http", "url": everythingWeb, "sharing": "session"},
			// It updates resources for the session that has subscribed, which is then everybody's.
			"everythingopen": map[string]any{"type": "http", "url": everythingWeb},
			"askerchild":     askerChild(t, "askerchild", "modern"),
			"askeroldchild":  askerChild(t, "askeroldchild", "legacy"),
			"askerweb":       map[string]any{"type": "http", "url": startAsker(t, "askerweb", true, nil)},
			"askeroldweb":    map[string]any{"type": "http", "url": startAsker(t, "askeroldweb", false, cut)},
		},
		"proxy": map[string]any{"state_dir": filepath.Join(work, "state"), "startup_grace": readyTimeout.String()},
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "mcp-proxy.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// askerChild has this binary as a server.
func askerChild(t *testing.T, name, protocol string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": self, "args": []string{}, "env": map[string]string{childServer: name}, "protocol": protocol}
}

// startEverything starts server-everything over HTTP and gives its URL.
func (s stage) startEverything(t *testing.T, work string) string {
	t.Helper()
	node, err := harness.Node(s.npm)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(s.npm, "node_modules", "@modelcontextprotocol", "server-everything", "dist", "index.js")
	p, err := harness.Start(harness.Command{
		Name: "everything", Args: []string{node, script, "streamableHttp"}, Env: []string{"PORT=" + port}, Dir: work, Logs: work,
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
