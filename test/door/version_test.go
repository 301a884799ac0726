package door

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestVersionHeaderOfLegacyRequests: the negotiated revision holds, whatever known one the header names, and none at
// all is fine.
func TestVersionHeaderOfLegacyRequests(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	tests := []struct {
		header string
		status int
	}{
		{"", 200}, {testmcp.Rev2503, 200}, {testmcp.Rev2506, 200}, {testmcp.Rev2511, 200}, {testmcp.Rev2024, 200},
		{"2025-01-01", 400}, {"1.0", 400}, {"latest", 400}, {"DRAFT-2025-v3", 400},
	}
	c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	c.Version = testmcp.Rev2506
	if c.Open(); c.Version != testmcp.Rev2506 {
		t.Fatalf("%s was negotiated", c.Version)
	}
	for _, tt := range tests {
		t.Run(tt.header, func(t *testing.T) {
			for _, method := range []string{"ping", "tools/list"} {
				a := post(c, c.Body("1", method, ""), method, "", "Mcp-Protocol-Version", tt.header)
				if a.Status != tt.status {
					t.Errorf("%s: HTTP %d, want %d: %s", method, a.Status, tt.status, a.Body)
				}
			}
		})
	}
}

// TestEveryUpstreamSeesItsOwnVersion: not the client's, not a constant, and not what the configuration says.
func TestEveryUpstreamSeesItsOwnVersion(t *testing.T) {
	t.Parallel()
	upstreams := map[string]string{"old": testmcp.Rev2024, "older": testmcp.Rev2503, "middle": testmcp.Rev2506, "newer": testmcp.Rev2511, "modern": testmcp.Rev2607}
	servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
	for name, version := range upstreams {
		srv := server([]string{"legacy"})
		srv.Versions = []string{version}
		if version == testmcp.Rev2607 {
			srv = server([]string{"modern"})
		}
		h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
		servers[name] = h.Entry(`"headers":{"MCP-Protocol-Version":"2025-01-01","mcp-method":"ping","Mcp-Session-Id":"mine","X-Team":"blue"}`)
		recs[name] = h.Rec
	}
	p := start(t, "", servers)
	clients := []*testmcp.Client{p.Client(testmcp.Modern)}
	for _, version := range []string{testmcp.Rev2503, testmcp.Rev2506, testmcp.Rev2511} {
		c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
		c.Version = version
		clients = append(clients, c.Open())
	}
	for name, version := range upstreams {
		t.Run(name, func(t *testing.T) {
			for _, c := range clients {
				wantText(t, c.CallTool(name+"__echo", `{"text":"x"}`), "x")
			}
			calls := recs[name].WaitN(t, len(clients), testmcp.CalledTool("echo"))
			for _, r := range calls {
				wantOwnVersion(t, r, version)
			}
		})
	}
}

func wantOwnVersion(t *testing.T, r testmcp.Record, version string) {
	t.Helper()
	got := r.Header.Values("Mcp-Protocol-Version")
	// The header came with 2025-06-18; before it there was none that a server could expect.
	if len(got) > 1 || len(got) == 0 && version >= testmcp.Rev2506 || len(got) == 1 && got[0] != version {
		t.Errorf("the upstream that speaks %s saw the version header %q", version, got)
	}
	if r.Header.Get("X-Team") != "blue" {
		t.Errorf("the configured header is missing: %v", r.Header)
	}
	if r.Header.Get("Mcp-Session-Id") == "mine" || r.Header.Get("Mcp-Method") == "ping" {
		t.Errorf("a configured header took the place of one of the protocol: %v", r.Header)
	}
}
