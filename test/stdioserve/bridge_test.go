package stdioserve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestTenBridgesShareTheServers(t *testing.T) {
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, one(rec, ""))
	var clients []*testmcp.PipeClient
	for i := range 10 {
		clients = append(clients, connect(t, eras[i%2].era, p).Open())
	}
	pids := map[string]bool{}
	for _, c := range clients {
		pids[text(c.CallTool("one__env", ""))] = true
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 || len(pids) != 1 {
		t.Errorf("%d children were started and %v answered, want one", n, pids)
	}
	for _, c := range clients {
		leaves(t, c)
	}
	if len(rec.Live()) != 1 {
		t.Errorf("of the server %v run after the bridges have gone, want the one", rec.Live())
	}
}

func TestBridgeOutlivesTheProxy(t *testing.T) {
	for _, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			p := testmcp.StartProxy(t, one(testmcp.NewRecorder(t), ""))
			c := connect(t, e.era, p).Open()
			wantText(t, "a call", c.CallTool("one__echo", `{"text":"before"}`), "before")
			p.Stop()
			m := c.CallTool("one__echo", `{"text":"meanwhile"}`)
			if m.Err().At("data", "reason").Str() != "unavailable" || !strings.Contains(m.Err().At("message").Str(), p.URL) {
				t.Errorf("a call without a proxy is answered with %s", m.Raw)
			}
			p.Restart()
			wantText(t, "a call after the restart", c.CallTool("one__echo", `{"text":"after"}`), "after")
			leaves(t, c)
		})
	}
}

func TestBridgeTokens(t *testing.T) {
	p := testmcp.StartProxy(t, one(testmcp.NewRecorder(t), `{"auth":{"tokens":[{"name":"me","token":"a-token-of-my-own"}]}}`), testmcp.WithoutReady())
	args := []string{"stdio", "--url", p.URL}
	for _, tt := range []struct {
		name  string
		env   []string
		args  []string
		wants string
	}{
		{"none", nil, args, "MCP_PROXY_TOKEN"},
		{"wrong", []string{"MCP_PROXY_TOKEN=not-the-token"}, args, "does not accept"},
		{"right", []string{"MCP_PROXY_TOKEN=a-token-of-my-own"}, args, ""},
		{"in another variable", []string{"MINE=a-token-of-my-own"}, append(args, "--token-env", "MINE"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testmcp.NewPipeClient(t, testmcp.Modern, tt.env, testmcp.Binary(t), tt.args...)
			m := c.Call("server/discover", "")
			if tt.wants == "" && m.Result() == nil || tt.wants != "" && !strings.Contains(m.Err().At("message").Str(), tt.wants) {
				t.Errorf("answered with %s", m.Raw)
			}
			leaves(t, c)
		})
	}
}

func TestUsage(t *testing.T) {
	rec := testmcp.NewRecorder(t)
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(one(rec, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"both", []string{"--url", "http://127.0.0.1:1/mcp", "--config", file}, 2, "one or the other"},
		{"an argument", []string{"more"}, 2, "unexpected argument"},
		{"a part of a URL", []string{"--url", "http://127.0.0.1:1/mcp", "--profile", "p"}, 2, "/profiles/NAME/mcp"},
		{"no URL", []string{"--url", "127.0.0.1:8080"}, 1, "not the URL"},
		{"no file", []string{"--config", file + ".none"}, 1, "none"},
		{"no such profile", []string{"--config", file, "--profile", "none"}, 1, "profile"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := testmcp.Run(t, nil, nil, append([]string{"stdio"}, tt.args...)...)
			if ran.Code != tt.code || !strings.Contains(ran.Stderr, tt.says) || ran.Stdout != "" {
				t.Errorf("exit code %d, stdout %q, stderr %q", ran.Code, ran.Stdout, ran.Stderr)
			}
		})
	}
}

func TestOneServerByItsOwnNames(t *testing.T) {
	c := testmcp.StartStdio(t, testmcp.Modern, one(testmcp.NewRecorder(t), ""), "--server", "one")
	wantText(t, "a call by the name of the server", c.CallTool("echo", `{"text":"mine"}`), "mine")
	leaves(t, c)
}
