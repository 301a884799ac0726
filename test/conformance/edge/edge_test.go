package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard keeps the names of the tools that were called.
type heard struct {
	mu    sync.Mutex
	names []string
}

func (h *heard) add(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = append(h.names, name)
}

func serve(t *testing.T, h *heard, names ...string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "server", Version: "1"}, nil)
	for _, name := range names {
		tool := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			h.add(req.Params.Name)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
	}
	handlers := map[bool]http.Handler{}
	for _, stateless := range []bool{true, false} {
		handlers[stateless] = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: stateless})
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[r.Header.Get("Mcp-Protocol-Version") == revisions["modern"]].ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	return web.URL
}

func TestScripts(t *testing.T) {
	tests := []struct {
		scenario string
		tools    []string
		context  string
		want     []string // the tools that are called
		mistake  string
	}{
		{scenario: "initialize", tools: []string{"a"}},
		{scenario: "tools_call", tools: []string{"a", "add_numbers"}, want: []string{"add_numbers"}},
		{scenario: "tools_call", tools: []string{"a"}, mistake: "add_numbers is not listed"},
		{scenario: "http-invalid-tool-headers", tools: []string{"b", "a"}, want: []string{"a", "b"}},
		{
			scenario: "http-custom-headers", tools: []string{"a"}, want: []string{"a", "a"},
			context: `{"toolCalls":[{"name":"a","arguments":{"x":1}},{"name":"a"}]}`,
		},
		{scenario: "http-custom-headers", tools: []string{"a"}, mistake: "hands over no calls"},
		{
			scenario: "json-schema-2020-12-preservation", tools: []string{"json_schema_2020_12_tool", "json_schema_echo"},
			want: []string{"json_schema_echo"},
		},
		{scenario: "http-standard-headers", tools: []string{"a"}, mistake: "no tool, no resource or no prompt"},
	}
	for _, tt := range tests {
		for era, revision := range revisions {
			t.Run(tt.scenario+" "+era, func(t *testing.T) {
				h := &heard{}
				g, err := readGiven(tt.context)
				if err != nil {
					t.Fatal(err)
				}
				p := peer{url: serve(t, h, tt.tools...), revision: revision, given: g}
				err = scripts[tt.scenario].run(t.Context(), p)
				if tt.mistake != "" {
					if err == nil || !strings.Contains(err.Error(), tt.mistake) {
						t.Errorf("run = %v, want an error with %q", err, tt.mistake)
					}
				} else if err != nil {
					t.Error(err)
				}
				if !slices.Equal(h.names, tt.want) {
					t.Errorf("called %q, want %q", h.names, tt.want)
				}
			})
		}
	}
}

func TestConsent(t *testing.T) {
	schema := map[string]any{"properties": map[string]any{
		"sure":  map[string]any{"type": "boolean"},
		"often": map[string]any{"type": "boolean", "default": false},
		"name":  map[string]any{"type": "string", "default": "Ada"},
	}}
	got, err := consents(t.Context(), &mcp.ElicitRequest{Params: &mcp.ElicitParams{RequestedSchema: schema}})
	if err != nil || got.Action != "accept" || len(got.Content) != 1 || got.Content["sure"] != true {
		t.Errorf("consents = %+v, %v; want it accepted with sure alone", got, err)
	}
}

func TestWriteConfig(t *testing.T) {
	path, err := writeConfig(t.TempDir(), "http://server/mcp", map[string]any{"sharing": "session"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"url": "http://server/mcp"`, `"sharing": "session"`, `"mode": "none"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the configuration is without %s:\n%s", want, text)
		}
	}
}

func TestWhatIsNotKnown(t *testing.T) {
	t.Setenv("MCP_CONFORMANCE_SCENARIO", "auth/basic-cimd")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-proxy", "p", "http://server"}, `"auth/basic-cimd"`},
		{[]string{"-proxy", "p", "-client", "none", "http://server"}, "usage"},
		{[]string{"http://server"}, "usage"},
	} {
		if err := run(t.Context(), tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("run %q = %v, want an error with %q", tt.args, err, tt.want)
		}
	}
}
