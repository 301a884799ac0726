package signin

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// What is fixed goes with every request, whatever the transport.
func TestFixedCredentialsGoWithEveryRequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ entry, header, value string }{
		"bearer":  {`"auth":{"type":"bearer","token":"fixed-token"}`, "Authorization", "Bearer fixed-token"},
		"api_key": {`"auth":{"type":"api_key","header":"x-api-key","key":"fixed-key"}`, "X-Api-Key", "fixed-key"},
	} {
		for _, k := range kinds {
			var mu sync.Mutex
			seen := 0
			h := k.serve(t, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				mu.Lock()
				defer mu.Unlock()
				if seen++; r.Header.Get(c.header) != c.value {
					t.Errorf("%s, %s: %s comes with %q", name, k.name, r.Method, r.Header)
				}
				return false
			})
			p := start(t, map[string]string{"up": h.Entry(c.entry)})
			if got := p.Client(testmcp.Legacy).CallTool("up__echo", `{"text":"x"}`).Text(); got != "x" {
				t.Errorf("%s, %s: the call gives %q", name, k.name, got)
			}
			wantUnsaid(t, p, "fixed-")
			p.Stop() // which ends the session
			mu.Lock()
			if seen < 4 {
				t.Errorf("%s, %s: only %d requests came", name, k.name, seen)
			}
			mu.Unlock()
		}
	}
}

// A token that is good no more costs nobody anything: another is asked for, once, and what was refused is sent again, in the
// same session.
func TestATokenThatIsRevokedIsReplaced(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			h := k.serve(t, a.admits)
			p := start(t, map[string]string{"up": h.Entry(a.entry())})
			clients := []*testmcp.Client{p.Client(testmcp.Legacy), p.Client(testmcp.Modern)}
			began := h.Rec.Count(testmcp.Received("initialize"))
			for round := range 3 {
				before := a.set(revoke)
				var wg sync.WaitGroup
				for range 5 {
					for _, c := range clients {
						pending := c.Begin("tools/call", testmcp.ToolParams("up__echo", `{"text":"x"}`))
						wg.Go(func() {
							if got := pending.Final(); got.Text() != "x" {
								t.Errorf("round %d: a call gives %s", round, got.Raw)
							}
						})
					}
				}
				wg.Wait()
				if n := a.set(func(*authority) {}) - before; n != 1 {
					t.Errorf("round %d: %d tokens were asked for", round, n)
				}
			}
			if n := h.Rec.Count(testmcp.CalledTool("echo")); n != 30 {
				t.Errorf("the server carried out %d calls of 30", n)
			}
			if n := h.Rec.Count(testmcp.Received("initialize")); n != began {
				t.Errorf("%d more handshakes", n-began)
			}
			wantUnsaid(t, p, clientSecret, "token-")
		})
	}
}

// Where there is no other token the tools stay listed, whoever calls them hears why, and the other servers go on. As soon as
// there is one again everything works, without a restart.
func TestAnAuthorizationServerThatRefuses(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			h := k.serve(t, a.admits)
			other := testmcp.NewRecorder(t)
			p := start(t, map[string]string{"up": h.Entry(a.entry()), "other": other.Entry("basic", nil)})
			p.WaitTool("up__echo")
			a.set(func(a *authority) { a.refuses = true; revoke(a) })
			c := p.Client(testmcp.Modern)
			failed := c.CallTool("up__echo", `{"text":"x"}`)
			if text := failed.Err().At("message").Str(); !strings.Contains(text, "needs authorization") || !strings.Contains(text, "invalid_client") {
				t.Errorf("the call gives %s", failed.Raw)
			}
			if got := c.CallTool("other__echo", `{"text":"y"}`).Text(); got != "y" {
				t.Errorf("the other server gives %q", got)
			}
			if tools := strings.Join(c.ToolNames(), " "); !strings.Contains(tools, "up__echo") {
				t.Errorf("the tools are %s", tools)
			}
			wantUnsaid(t, p, clientSecret, "token-")
			a.set(func(a *authority) { a.refuses = false })
			testmcp.Eventually(t, "a call that works", func() bool { return c.CallTool("up__echo", `{"text":"x"}`).Text() == "x" })
		})
	}
}

// A server that cannot be signed in at when the proxy starts is said to be so, and is there once it can.
func TestAnAuthorizationServerThatRefusesAtTheStart(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.set(func(a *authority) { a.refuses = true })
	h := kinds[0].serve(t, a.admits)
	p := start(t, map[string]string{"up": h.Entry(a.entry())})
	testmcp.Eventually(t, "the reason", func() bool {
		_, body := p.Ready()
		return strings.Contains(string(body), "needs authorization: no token from 127.0.0.1")
	})
	a.set(func(a *authority) { a.refuses = false })
	p.WaitTool("up__echo")
	if a.set(func(*authority) {}) != 1 || h.Rec.Count(testmcp.Received("initialize")) == 0 {
		t.Error("it did not sign in once")
	}
	wantUnsaid(t, p, clientSecret, "token-")
}
