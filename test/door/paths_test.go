package door

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const tokens = `"auth":{"tokens":[{"name":"alice","token":"token-of-alice"},{"name":"bob","token":"token-of-bob"}]}`

// as gives a client that shows this token.
func as(t *testing.T, url string, era testmcp.Era, token string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, url, era)
	if token != "" {
		c.Header.Set("Authorization", "Bearer "+token)
	}
	return c
}

// TestEndpointsAreServedWithAndWithoutSlash: a redirect between the two spellings would lose the body in some clients
// and the credential in others.
func TestEndpointsAreServedWithAndWithoutSlash(t *testing.T) {
	t.Parallel()
	p, _ := one(t, `{`+tokens+`,"profiles":{"few":{"servers":["up"]}}}`)
	for path, tool := range map[string]string{"/mcp": "up__echo", "/servers/up/mcp": "echo", "/profiles/few/mcp": "up__echo"} {
		for _, slash := range []string{"", "/"} {
			for _, scheme := range []string{"", "https"} {
				t.Run(path+slash+" "+scheme, func(t *testing.T) {
					forwarded := func(c *testmcp.Client) *testmcp.Client {
						c.Header.Set("X-Forwarded-Proto", scheme)
						return c
					}
					for _, e := range eras {
						c := forwarded(as(t, p.Base+path+slash, e.era, "token-of-alice")).Open()
						wantText(t, c.CallTool(tool, `{"text":"x"}`), "x")
						// A session holds at either spelling.
						c.URL = p.Base + path
						wantText(t, c.CallTool(tool, `{"text":"x"}`), "x")
						stranger := forwarded(as(t, p.Base+path+slash, e.era, ""))
						wantUnauthorized(t, stranger.Try("tools/list", ""))
					}
					get := forwarded(as(t, p.Base+path+slash, testmcp.Legacy, "")).Get("")
					wantUnauthorized(t, get.Final())
				})
			}
		}
	}
}

func wantUnauthorized(t *testing.T, a testmcp.Answer) {
	t.Helper()
	wantRefusal(t, a, http.StatusUnauthorized, codeInvalidRequest, "null")
	if a.Header.Get("Location") != "" || !strings.HasPrefix(a.Header.Get("Www-Authenticate"), "Bearer ") {
		t.Errorf("the headers of the 401 are %v", a.Header)
	}
}

// TestPagesOfOtherOriginsThatAreAllowed are browser clients: a preflight without credentials, then the real requests,
// whose answers they must be able to read.
func TestPagesOfOtherOriginsThatAreAllowed(t *testing.T) {
	t.Parallel()
	const origin = "https://app.example.com"
	p, _ := one(t, `{`+tokens+`,"allowed_origins":["`+origin+`"]}`)
	for _, url := range []string{p.URL, p.URL + "/", p.Server("up")} {
		c := testmcp.NewClient(t, url, testmcp.Legacy)
		c.Header.Set("Origin", origin)
		wanted := "authorization, content-type, mcp-protocol-version, mcp-session-id, last-event-id, mcp-method, mcp-name, mcp-param-region"
		pre := c.Do(http.MethodOptions, "", http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"POST"},
			"Access-Control-Request-Headers": {wanted}}).Final()
		if pre.Status != http.StatusNoContent || len(pre.Body) != 0 {
			t.Errorf("the preflight of %s: HTTP %d %s", url, pre.Status, pre.Body)
		}
		wantTokens(t, pre.Header.Get("Access-Control-Allow-Methods"), "GET", "POST", "DELETE", "OPTIONS")
		wantTokens(t, pre.Header.Get("Access-Control-Allow-Headers"), strings.Split(wanted, ", ")...)
		wantReadable(t, pre, origin)
		refused := c.Initialize() // no token
		wantUnauthorized(t, refused)
		wantReadable(t, refused, origin)
		c.Header.Set("Authorization", "Bearer token-of-alice")
		opened := c.Initialize()
		wantReadable(t, opened, origin)
		wantTokens(t, opened.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id", "WWW-Authenticate")
		c.Open()
		wantReadable(t, c.Try("tools/list", ""), origin)
		if stream := c.Get(""); stream.Status != 200 || stream.Header.Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("the standing stream: HTTP %d, %v", stream.Status, stream.Header)
		}
		if status := c.Delete(); status/100 != 2 {
			t.Errorf("the end of the session: HTTP %d", status)
		}
	}
}

// wantTokens looks for all of these in a header that lists.
func wantTokens(t *testing.T, list string, tokens ...string) {
	t.Helper()
	have := map[string]bool{}
	for tok := range strings.SplitSeq(list, ",") {
		have[strings.ToLower(strings.TrimSpace(tok))] = true
	}
	for _, tok := range tokens {
		if !have[strings.ToLower(tok)] {
			t.Errorf("%q lacks %s", list, tok)
		}
	}
}

func wantReadable(t *testing.T, a testmcp.Answer, origin string) {
	t.Helper()
	if got := a.Header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != origin {
		t.Errorf("HTTP %d is readable for %q, want %s", a.Status, got, origin)
	}
	if !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "Origin") {
		t.Errorf("the answer does not vary by origin: %v", a.Header)
	}
}

// TestPagesOfOtherOriginsThatAreNotAllowed get 403 for the real request, whatever their token, and nothing to read.
func TestPagesOfOtherOriginsThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	p, rec := one(t, `{`+tokens+`,"allowed_origins":["https://app.example.com"]}`)
	for _, origin := range []string{"https://evil.example.com", "http://app.example.com", "https://app.example.com.evil.example", "null",
		"https://app.example.com:8443", "file://"} {
		t.Run(origin, func(t *testing.T) {
			for _, e := range eras {
				c := as(t, p.URL, e.era, "token-of-alice")
				c.Header.Set("Origin", origin)
				a := c.Try("tools/call", testmcp.ToolParams("up__echo", ""))
				wantRefusal(t, a, http.StatusForbidden, codeInvalidRequest, "null")
				if a.Header.Get("Access-Control-Allow-Origin") != "" || !strings.Contains(string(a.Body), "allowed_origins") {
					t.Errorf("headers %v, body %s", a.Header, a.Body)
				}
			}
		})
	}
	if n := rec.Count(testmcp.Received("tools/call")); n != 0 {
		t.Errorf("%d of these calls reached the upstream", n)
	}
}

// TestEveryOriginMayBeAllowedButNeverWithCredentials: what browsers add by themselves must not count.
func TestEveryOriginMayBeAllowedButNeverWithCredentials(t *testing.T) {
	t.Parallel()
	p, _ := one(t, `{`+tokens+`,"allowed_origins":["*"]}`)
	c := as(t, p.URL, testmcp.Modern, "token-of-alice")
	c.Header.Set("Origin", "https://any.example.com")
	a := c.Try("tools/list", "")
	allowed := a.Header.Get("Access-Control-Allow-Origin")
	if a.Result() == nil || allowed != "*" && allowed != "https://any.example.com" {
		t.Errorf("HTTP %d, allowed origin %q: %s", a.Status, allowed, a.Body)
	}
	if got := a.Header.Get("Access-Control-Allow-Credentials"); got != "" {
		t.Errorf("Access-Control-Allow-Credentials is %q", got)
	}
}

// TestHostBehindAReverseProxy: a name that is not ours is refused on loopback unless the configuration knows it, and
// the refusal says how to tell it.
func TestHostBehindAReverseProxy(t *testing.T) {
	t.Parallel()
	const public = "mcp.example.com"
	tests := []struct {
		name, settings string
		args           []string
		status         int
	}{
		{"plain", `{}`, nil, 403},
		{"allowed host", `{"allowed_hosts":["mcp.example.com"]}`, nil, 200},
		{"public URL", `{"public_url":"https://mcp.example.com"}`, nil, 200},
		{"another allowed host", `{"allowed_hosts":["other.example.com"]}`, nil, 403},
		{"all addresses, as in a container", `{` + tokens + `}`, []string{"--listen", "0.0.0.0:0"}, 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := start(t, tt.settings, map[string]string{"up": rec.Entry("door", nil)}, testmcp.WithArgs(tt.args...))
			for _, forwarded := range []string{"", public} {
				c := as(t, p.URL, testmcp.Modern, "token-of-alice")
				c.Header.Set("Host", public)
				c.Header.Set("X-Forwarded-Host", forwarded)
				a := c.Try("tools/call", testmcp.ToolParams("up__echo", `{"text":"x"}`))
				if tt.status == http.StatusOK {
					wantText(t, a, "x")
				} else {
					wantRefusal(t, a, tt.status, codeInvalidRequest, "null")
					if !strings.Contains(string(a.Body), "allowed_hosts") {
						t.Errorf("the refusal does not name the setting: %s", a.Body)
					}
					p.WaitLog("is not listed in proxy.allowed_hosts")
				}
				// The check of Origin stays on, whatever the host.
				c.Header.Set("Origin", "https://evil.example.com")
				wantRefusal(t, c.Try("tools/list", ""), http.StatusForbidden, codeInvalidRequest, "null")
			}
		})
	}
}
