package life

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// shop writes every order down and loses the connection before it says so.
var _ = testmcp.Register("shop", func(args []string) *testmcp.Server {
	s := testmcp.Basic("shop")
	s.Era = stdio.Era(args)
	form := args[1]
	order := func(c *testmcp.Call) {
		c.Note("ordered")
		switch form {
		case "pipe":
			c.Process().Crash()
		case "sse":
			c.Note("lost") // the test breaks the one stream
			c.Hang()
		default:
			c.Respond(testmcp.Reset)
		}
	}
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("order", order),
		testmcp.SimpleTool("order-later", func(c *testmcp.Call) {
			c.Progress(1, 2, "ordering")
			order(c)
		}),
	)
	return s
})

func TestACallWhoseConnectionDiesAfterItRanIsNotRepeated(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			cut := func() {}
			var entry string
			if way.Name == "sse" {
				h := testmcp.ServeSSE(t, testmcp.Registered("shop", "legacy", "sse"), testmcp.SSEOptions{Recorder: rec})
				cut, entry = h.CutStreams, h.Entry(`"type":"sse"`, `"restart":{"initial_delay":"10ms"}`)
			} else {
				entry = way.Entry(t, rec, "shop", nil, `"restart":{"initial_delay":"10ms"}`)
			}
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry}))
			orders := 0
			for name, era := range stdio.Eras {
				c := p.Client(era)
				for _, tool := range []string{"order", "order-later"} {
					ready(t, p, "up")
					call := c.Begin("tools/call", `{"name":"up__`+tool+`","arguments":{},"_meta":{"progressToken":"p"}}`)
					orders++
					rec.WaitN(t, orders, testmcp.Noted("ordered"))
					cut()
					a := call.Final()
					message := a.Err().At("message").Str()
					if a.Err().At("data", "reason").Str() != "uncertain" || !strings.HasPrefix(message, "up::"+tool+": ") || !strings.Contains(message, "may or may not") {
						t.Errorf("%s client, %s: %.400s %v", name, tool, a.Raw, a.Error)
					}
					if way.Pipe || way.Name == "sse" { // the client may hear of the end before the status does
						testmcp.Eventually(t, "another connection", func() bool {
							return p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "up") >= float64(orders)
						})
					}
				}
			}
			ready(t, p, "up")
			if a := p.Client(testmcp.Modern).CallTool("up__echo", `{"text":"x"}`); a.Text() != "x" {
				t.Errorf("afterwards: %.300s", a.Raw)
			}
			if n := rec.Count(testmcp.Noted("ordered")); n != orders {
				t.Errorf("the ledger has %d lines for %d orders", n, orders)
			}
			if n := p.Metrics().Sum("mcp_proxy_requests_total", "upstream", "up", "outcome", "uncertain"); n != float64(orders) {
				t.Errorf("%v calls are counted as uncertain, want %d", n, orders)
			}
		})
	}
}

func TestACallWhoseConnectionDiesBeforeItRanIsNotRepeatedEither(t *testing.T) {
	for name, era := range stdio.Eras {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testmcp.Registered("shop", name, "json")
			var seen atomic.Int32
			h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, body []byte) bool {
				if !strings.Contains(string(body), `"order"`) {
					return false
				}
				seen.Add(1)
				testmcp.Reset(w, r)
				return true
			}})
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": h.Entry()}))
			a := p.Client(era).CallTool("up__order", "")
			// What has been sent may have been carried out, for all that anybody can know.
			if a.Err().At("data", "reason").Str() != "uncertain" {
				t.Errorf("the call gives %.300s", a.Raw)
			}
			if n := seen.Load(); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if n := h.Rec.Count(testmcp.Noted("ordered")); n != 0 {
				t.Errorf("the ledger has %d lines", n)
			}
		})
	}
}
