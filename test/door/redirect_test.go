package door

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// redirecting makes an upstream whose place has moved: requests to the keys of the map are redirected to the values.
// It gives the entry with the given path.
func redirecting(t *testing.T, era string, status int, from string, moves map[string]string) (entry string, rec *testmcp.Recorder) {
	t.Helper()
	h := testmcp.ServeHTTP(t, server([]string{era}), testmcp.HTTPOptions{
		Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			to, moved := moves[r.URL.Path]
			if moved {
				testmcp.Redirect(status, to)(w, r)
			}
			return moved
		},
	})
	url := strings.TrimSuffix(h.URL, "/mcp") + from
	return `{"url":` + testmcp.Quote(url) + `,"auth_token":"token-of-the-upstream","headers":{"X-Team":"blue"}}`, h.Rec
}

// TestRedirectsOfUpstreamsThatStayAtTheirOriginAreFollowed: with method, body and headers, standing stream and end of
// session included, and the operator is told once.
func TestRedirectsOfUpstreamsThatStayAtTheirOriginAreFollowed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status int
		moves  map[string]string
	}{
		"slash":     {307, map[string]string{"/old": "/mcp"}},
		"permanent": {308, map[string]string{"/old": "/mcp"}},
		"relative":  {307, map[string]string{"/old": "mcp"}},
		"two-hops":  {307, map[string]string{"/old": "/older", "/older": "/mcp"}},
	}
	servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
	for name, tt := range tests {
		for _, era := range []string{"legacy", "modern"} {
			servers[era+"-"+name], recs[era+"-"+name] = redirecting(t, era, tt.status, "/old", tt.moves)
		}
	}
	p := start(t, "", servers)
	for name, rec := range recs {
		t.Run(name, func(t *testing.T) {
			c := p.Client(testmcp.Legacy)
			for range 3 {
				wantText(t, c.CallTool(name+"__echo", `{"text":"x"}`), "x")
			}
			for _, r := range rec.WaitN(t, 3, testmcp.CalledTool("echo")) {
				if r.Header.Get("Authorization") != "Bearer token-of-the-upstream" || r.Header.Get("X-Team") != "blue" {
					t.Errorf("the redirected request came without its headers: %v", r.Header)
				}
			}
			if strings.HasPrefix(name, "legacy") {
				rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "GET /mcp" })
			}
			if n := advice(p, name); n != 1 {
				t.Errorf("the log tells of the redirect %d times, want once", n)
			}
		})
	}
	p.Stop()
	for name, rec := range recs {
		if strings.HasPrefix(name, "legacy") && rec.Count(testmcp.Is(testmcp.Deleted)) != 1 {
			t.Errorf("%s: its session was not ended by the proxy", name)
		}
	}
}

// advice counts the log lines about redirects of that upstream.
func advice(p *testmcp.Proxy, upstream string) (n int) {
	for _, line := range p.Log() {
		if l := testmcp.Raw(line); l.At("upstream").Str() == upstream && l.At("level").Str() == "warn" && strings.Contains(line, "redirects") {
			n++
		}
	}
	return n
}

// TestRedirectsOfUpstreamsThatGoAstrayAreErrors: those to another origin would carry credentials there, loops and other
// statuses would lose the request. Each is named, and the other upstreams serve.
func TestRedirectsOfUpstreamsThatGoAstrayAreErrors(t *testing.T) {
	t.Parallel()
	elsewhere := testmcp.ServeHTTP(t, server(nil), testmcp.HTTPOptions{})
	other := elsewhere.URL
	tests := map[string]struct {
		status int
		moves  map[string]string
		says   string
	}{
		"elsewhere":           {307, map[string]string{"/old": other}, "another origin"},
		"elsewhere-for-good":  {308, map[string]string{"/old": other}, "another origin"},
		"elsewhere-after-all": {307, map[string]string{"/old": "/older", "/older": other}, "another origin"},
		"loop":                {307, map[string]string{"/old": "/old"}, "redirects"},
		"long-loop":           {307, map[string]string{"/old": "/older", "/older": "/old"}, "redirects"},
		"found":               {302, map[string]string{"/old": "/mcp"}, "302"},
		"moved":               {301, map[string]string{"/old": "/mcp"}, "301"},
		"nowhere":             {307, map[string]string{"/old": ""}, "Location"},
	}
	servers := map[string]string{"steady": testmcp.NewRecorder(t).Entry("door", nil)}
	recs := map[string]*testmcp.Recorder{}
	for name, tt := range tests {
		servers[name], recs[name] = redirecting(t, "legacy", tt.status, "/old", tt.moves)
	}
	p := start(t, "", servers)
	c := p.Client(testmcp.Legacy)
	wantText(t, c.CallTool("steady__echo", `{"text":"x"}`), "x")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			testmcp.Eventually(t, "reason in the status", func() bool {
				return strings.Contains(lastError(p, name), tt.says)
			})
			if n := recs[name].Count(testmcp.Received("tools/call")); n != 0 {
				t.Errorf("%d calls went astray", n)
			}
		})
	}
	if seen := elsewhere.Rec.Find(testmcp.Is(testmcp.Request)); len(seen) != 0 {
		t.Errorf("the other origin got %d requests, the first with %v", len(seen), seen[0].Header)
	}
}

// lastError gives what the status page says about the trouble of an upstream.
func lastError(p *testmcp.Proxy, id string) string {
	for _, u := range p.Status().At("upstreams").Items() {
		if u.At("id").Str() == id {
			return u.At("last_error", "message").Str()
		}
	}
	return ""
}
