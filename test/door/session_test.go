package door

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestDeleteEndsTheSessionWithAllThatRunsInIt: its calls are cancelled at their upstreams, its streams end, and its id
// is worth nothing from then on.
func TestDeleteEndsTheSessionWithAllThatRunsInIt(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, `{"stream_after":"50ms"}`)
	c, other := p.Client(testmcp.Legacy), p.Client(testmcp.Legacy)
	get := stand(t, c)
	for i := range places {
		c.Start("tools/call", testmcp.ToolParams(fmt.Sprintf("up%d__hang", i), ""))
	}
	if status := c.Delete(); status/100 != 2 {
		t.Errorf("DELETE was answered with HTTP %d", status)
	}
	for _, rec := range recs {
		rec.Wait(t, testmcp.Is(testmcp.Cancel))
	}
	if !get.WaitOver() {
		t.Error("the standing stream goes on")
	}
	wantRefusal(t, c.Send(`"after"`, "tools/list", "").Final(), http.StatusNotFound, codeInvalidRequest, `"after"`)
	wantRefusal(t, c.Get("").Final(), http.StatusNotFound, codeInvalidRequest, "null")
	if status := c.Delete(); status != http.StatusNotFound {
		t.Errorf("the second DELETE was answered with HTTP %d", status)
	}
	testmcp.Eventually(t, "cancelled calls in the metrics", func() bool {
		return p.Metrics().Sum("mcp_proxy_cancellations_total", "cause", "session_end") == float64(len(places))
	})
	wantText(t, other.CallTool("up0__echo", `{"text":"x"}`), "x")
	if n := p.Metrics().Sum("mcp_proxy_sessions", "era", "legacy"); n != 1 {
		t.Errorf("%v sessions are counted, want 1", n)
	}
}

// TestSessionsBelongToTheirPrincipalAndEndpoint: to anybody else, and anywhere else, they do not exist.
func TestSessionsBelongToTheirPrincipalAndEndpoint(t *testing.T) {
	t.Parallel()
	p, rec := one(t, `{`+tokens+`,"profiles":{"few":{"servers":["up"]}}}`)
	alice := as(t, p.URL, testmcp.Legacy, "token-of-alice").Open()
	held := later(alice, `"held"`, "tools/call", testmcp.ToolParams("up__hold", `{"text":"x","signal":"go"}`))
	rec.Wait(t, testmcp.Noted("holding x"))
	thieves := map[string]*testmcp.Client{
		"another principal": as(t, p.URL, testmcp.Legacy, "token-of-bob"),
		"a server's own":    as(t, p.Server("up"), testmcp.Legacy, "token-of-alice"),
		"a profile's":       as(t, p.Profile("few"), testmcp.Legacy, "token-of-alice"),
	}
	for name, thief := range thieves {
		t.Run(name, func(t *testing.T) {
			thief.Session = alice.Session
			wantRefusal(t, thief.Send("1", "tools/list", "").Final(), http.StatusNotFound, codeInvalidRequest, "1")
			wantRefusal(t, thief.Get("").Final(), http.StatusNotFound, codeInvalidRequest, "null")
			if status := thief.CancelID(`"held"`); status != http.StatusNotFound {
				t.Errorf("a cancel was answered with HTTP %d", status)
			}
			if status := thief.Delete(); status != http.StatusNotFound {
				t.Errorf("DELETE was answered with HTTP %d", status)
			}
		})
	}
	rec.Signal("go")
	wantText(t, <-held, "x")
	wantText(t, alice.CallTool("up__echo", `{"text":"y"}`), "y")
	if n := rec.Count(testmcp.Is(testmcp.Cancel)); n != 0 {
		t.Errorf("%d calls were cancelled by somebody else", n)
	}
}

// TestStaleSessionOfAnInitializeIsIgnored: clients that come back send the id that they had.
func TestStaleSessionOfAnInitializeIsIgnored(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	for _, stale := range []string{"0123456789abcdef", "nonsense!"} {
		c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
		c.Session = stale
		c.Open()
		if c.Session == stale || c.Session == "" {
			t.Errorf("the new session is %q", c.Session)
		}
		wantText(t, c.CallTool("up__echo", `{"text":"x"}`), "x")
	}
}

// TestLegacyClientsMayLoseTheirConnectionForAWhile: a disconnect is no cancel until the window has passed; then the
// one call is cancelled at its upstream, in that upstream's own way.
func TestLegacyClientsMayLoseTheirConnectionForAWhile(t *testing.T) {
	t.Parallel()
	const window = 400 * time.Millisecond
	p, recs := everywhere(t, `{"stream_after":"10ms","sessions":{"resume_window":"400ms"}}`)
	for i, pl := range places {
		t.Run(pl.name, func(t *testing.T) {
			t.Parallel()
			c, up := p.Client(testmcp.Legacy), fmt.Sprintf("up%d", i)
			lost := c.Start("tools/call", testmcp.ToolParams(up+"__hang", ""))
			recs[i].Wait(t, testmcp.CalledTool("hang"))
			kept := later(c, `"kept"`, "tools/call", testmcp.ToolParams(up+"__hold", `{"text":"x","signal":"go"}`))
			recs[i].Wait(t, testmcp.Noted("holding x"))
			gone := time.Now()
			lost.Close()
			if waited := recs[i].Wait(t, testmcp.Is(testmcp.Cancel)).Time.Sub(gone); waited < window {
				t.Errorf("the call was cancelled %v after its client had gone, before the window of %v", waited, window)
			}
			testmcp.Eventually(t, "outcome in the metrics", func() bool {
				m := p.Metrics()
				return m.Sum("mcp_proxy_requests_total", "upstream", up, "outcome", "client_gone") == 1 &&
					m.Sum("mcp_proxy_cancellations_total", "upstream", up, "cause", "client_gone") == 1
			})
			recs[i].Signal("go")
			wantText(t, <-kept, "x")
			if n := recs[i].Count(testmcp.Is(testmcp.Cancel)); n != 1 {
				t.Errorf("%d calls were cancelled, want 1", n)
			}
		})
	}
}

// TestCallsOfLostLegacyClientsRunToTheirEnd within the window, as if nobody had gone.
func TestCallsOfLostLegacyClientsRunToTheirEnd(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, `{"stream_after":"10ms"}`)
	for i, pl := range places {
		t.Run(pl.name, func(t *testing.T) {
			up := fmt.Sprintf("up%d", i)
			s := p.Client(testmcp.Legacy).Start("tools/call", testmcp.ToolParams(up+"__hold", `{"text":"x","signal":"go"}`))
			recs[i].Wait(t, testmcp.Noted("holding x"))
			s.Close()
			// The stream is off the books once the loss has been noticed.
			testmcp.Eventually(t, "notice of the loss", func() bool { return p.Metrics().Sum("mcp_proxy_streams", "kind", "post") == 0 })
			recs[i].Signal("go")
			testmcp.Eventually(t, "outcome in the metrics", func() bool {
				return p.Metrics().Sum("mcp_proxy_requests_total", "upstream", up, "method", "tools/call", "outcome", "ok") == 1
			})
			if n := recs[i].Count(testmcp.Is(testmcp.Cancel)); n != 0 {
				t.Errorf("%d calls were cancelled", n)
			}
		})
	}
}

// TestStatelessClientsCancelByClosing: at once, whatever the window of the others.
func TestStatelessClientsCancelByClosing(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, `{"stream_after":"10ms","sessions":{"resume_window":"1h"}}`)
	for i, pl := range places {
		t.Run(pl.name, func(t *testing.T) {
			c, up := p.Client(testmcp.Modern), fmt.Sprintf("up%d", i)
			s := c.Start("tools/call", testmcp.ToolParams(up+"__hang", ""))
			recs[i].Wait(t, testmcp.CalledTool("hang"))
			s.Close()
			recs[i].Wait(t, testmcp.Is(testmcp.Cancel))
			testmcp.Eventually(t, "outcome in the metrics", func() bool {
				m := p.Metrics()
				return m.Sum("mcp_proxy_requests_total", "upstream", up, "outcome", "cancelled") == 1 &&
					m.Sum("mcp_proxy_cancellations_total", "upstream", up, "cause", "client") == 1
			})
			wantText(t, c.CallTool(up+"__echo", `{"text":"x"}`), "x")
		})
	}
}
