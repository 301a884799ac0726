package testmcp

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveAll serves a basic server in each of the ways that the SDK's client can reach.
func serveAll(t *testing.T, era Era) map[string]func(*testing.T) mcp.Transport {
	web := func(opt HTTPOptions) func(*testing.T) mcp.Transport {
		return func(t *testing.T) mcp.Transport {
			s := Basic("web")
			s.Era = era
			h := ServeHTTP(t, s, opt)
			return &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: ownClient(t)}
		}
	}
	all := map[string]func(*testing.T) mcp.Transport{
		"child": func(t *testing.T) mcp.Transport {
			rec := NewRecorder(t)
			return &mcp.CommandTransport{Command: childCommand(rec, "era", eraNames[era])}
		},
		"http as needed": web(HTTPOptions{}),
		"http events":    web(HTTPOptions{Answers: AsEvents, Resumable: true}),
		"http json":      web(HTTPOptions{Answers: AsJSON}),
	}
	if era == Legacy {
		all["http without sessions"] = web(HTTPOptions{NoSessions: true})
		all["http+sse"] = func(t *testing.T) mcp.Transport {
			h := ServeSSE(t, Basic("old"), SSEOptions{Prefix: "/gw/a"})
			return &mcp.SSEClientTransport{Endpoint: h.URL, HTTPClient: ownClient(t)}
		}
	}
	return all
}

var eraNames = map[Era]string{Legacy: "legacy", Modern: "modern", Both: "both"}

var _ = Register("era", func(args []string) *Server {
	s := Basic("child")
	for e, name := range eraNames {
		if name == args[0] {
			s.Era = e
		}
	}
	return s
})

func childCommand(rec *Recorder, name string, args ...string) *exec.Cmd {
	command, arguments, env := rec.Command(name, args...)
	cmd := exec.Command(command, arguments...)
	cmd.Env = os.Environ()
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

func ownClient(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestSDKClientListsAndCalls(t *testing.T) {
	for era, name := range eraNames {
		for way, serve := range serveAll(t, era) {
			t.Run(name+"/"+way, func(t *testing.T) {
				// Recorders fail the test for any breach, so this also says that they see none where there is none.
				listAndCall(t, serve(t), name)
			})
		}
	}
}

func listAndCall(t *testing.T, tr mcp.Transport, era string) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(ctx, tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	version := session.InitializeResult().ProtocolVersion
	if era == "modern" && version != Rev2607 || era == "legacy" && version >= Rev2607 {
		t.Errorf("connected at %s", version)
	}
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != len(basicTools()) {
		t.Fatalf("tools: %v, %v", tools, err)
	}
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := res.Content[0].(*mcp.TextContent); !ok || text.Text != "hello" {
		t.Errorf("echo gave %v", res.Content[0])
	}
	read, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: firstResource(ctx, t, session)})
	if err != nil || len(read.Contents) != 1 {
		t.Errorf("read: %v, %v", read, err)
	}
	if _, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"}); err != nil {
		t.Error(err)
	}
}

func firstResource(ctx context.Context, t *testing.T, s *mcp.ClientSession) string {
	list, err := s.ListResources(ctx, nil)
	if err != nil || len(list.Resources) != 1 {
		t.Fatalf("resources: %v, %v", list, err)
	}
	return list.Resources[0].URI
}
