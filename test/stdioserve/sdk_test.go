package stdioserve

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestTheSDKsClient lets an independent client launch the program as a command.
func TestTheSDKsClient(t *testing.T) {
	revisions := map[string]string{"old client": testmcp.Rev2511, "new client": testmcp.Rev2607}
	commands := map[string]func(t *testing.T) []string{
		"own servers": func(t *testing.T) []string {
			file := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(file, []byte(one(testmcp.NewRecorder(t), "")), 0o600); err != nil {
				t.Fatal(err)
			}
			return []string{"stdio", "--config", file}
		},
		"bridge": func(t *testing.T) []string {
			return []string{"stdio", "--url", testmcp.StartProxy(t, one(testmcp.NewRecorder(t), "")).URL}
		},
	}
	for way, command := range commands {
		for era, revision := range revisions {
			t.Run(way+", "+era, func(t *testing.T) {
				cmd := exec.Command(testmcp.Binary(t), command(t)...)
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
				visit(t, cmd, revision)
			})
		}
	}
}

func visit(t *testing.T, cmd *exec.Cmd, revision string) {
	ctx, cancel := context.WithTimeout(t.Context(), testmcp.Patience)
	defer cancel()
	changed := make(chan struct{}, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "launcher", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	transport := &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Errorf("the client speaks %s, want %s", got, revision)
	}
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "one__echo" }) {
		t.Errorf("the list of %d tools lacks one__echo", len(list.Tools))
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "one__echo", Arguments: map[string]any{"text": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := result.Content[0].(*mcp.TextContent); !ok || got.Text != "hello" {
		t.Errorf("the call gave %v", result.Content)
	}
	if err := session.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}
