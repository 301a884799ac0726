package life

import (
	"fmt"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// startled ends when it is sent a notification that it does not know, as some old servers do.
var _ = testmcp.Register("startled", func(args []string) *testmcp.Server {
	s := testmcp.Basic("startled")
	s.Era = stdio.Era(args)
	s.On = map[string]testmcp.Handler{"notifications/cancelled": testmcp.Exits(1)}
	return s
})

// A server that ends when it is told of a cancel takes the calls of others with it, once: it is started again and told of
// no more cancels for a while.
func TestAServerThatEndsAtACancelIsToldOfNoMore(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config(`{"stream_after":"10ms"}`,
				map[string]string{"up": way.Entry(t, rec, "startled", nil, `"restart":{"initial_delay":"10ms"}`)}))
			others := []*testmcp.Client{p.Client(testmcp.Legacy), p.Client(testmcp.Modern)}
			hold := func(round int) (held []*testmcp.Pending) {
				for i, c := range others {
					held = append(held, c.Begin("tools/call", testmcp.ToolParams("up__wait", fmt.Sprintf(`{"signal":"go %d"}`, round))))
					rec.WaitN(t, round*len(others)+i+1, testmcp.CalledTool("wait"))
				}
				return held
			}
			hung := 0
			giveUp := func(c *testmcp.Client) {
				s := c.Start("tools/call", testmcp.ToolParams("up__hang", ""))
				hung++
				rec.WaitN(t, hung, testmcp.CalledTool("hang"))
				c.Cancel(s)
			}
			cancelled := func() float64 { return p.Metrics().Sum("mcp_proxy_cancellations_total", "upstream", "up") }

			held := hold(0)
			giveUp(others[0])
			for _, call := range held {
				if reason := call.Final().Err().At("data", "reason").Str(); reason != "uncertain" {
					t.Errorf("a call beside the cancel that ended the server gives %q", reason)
				}
			}
			rec.WaitN(t, 2, testmcp.Is(testmcp.Start))
			ready(t, p, "up")
			held = hold(1)
			before := cancelled()
			for _, c := range others {
				giveUp(c)
			}
			testmcp.Eventually(t, "the calls that are given up", func() bool { return cancelled() == before+2 })
			rec.Signal("go 1")
			for _, call := range held {
				if a := call.Final(); a.Text() != "waited" {
					t.Errorf("a call beside later cancels gives %s", a.Raw)
				}
			}
			if n := rec.Count(testmcp.Received("notifications/cancelled")); n != 1 {
				t.Errorf("the server was told of %d cancels", n)
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 2 {
				t.Errorf("the server was started %d times", n)
			}
		})
	}
}
