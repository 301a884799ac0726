package framing

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// deaf does one thing after the other and reads nothing meanwhile.
var _ = testmcp.Register("deaf", func(args []string) *testmcp.Server {
	s := testmcp.Basic("deaf")
	s.Era, s.Serial = stdio.Era(args), true
	s.Capabilities = `{"tools":{}}` // without announcements, for which it would have to wait
	s.Tools = append(s.Tools,
		// spout fills its stdout before it reads on.
		testmcp.SimpleTool("spout", func(c *testmcp.Call) {
			if !c.Until("spout") {
				return
			}
			for range 16 {
				c.Process().Stdout(strings.Repeat("x", 64<<10) + "\n")
			}
			c.Text("spouted")
		}),
		testmcp.SimpleTool("measure", func(c *testmcp.Call) { c.Text(c.Args("text").Str()[:10]) }),
	)
	return s
})

// large gives arguments of four times what a pipe holds.
func large(first string) string { return `{"text":"` + first + strings.Repeat("y", 256<<10) + `"}` }

func TestBothDirectionsOfAPipeMayBeFullAtOnce(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "deaf", nil)}))
			c := p.Client(testmcp.Modern)
			spout := c.Begin("tools/call", testmcp.ToolParams("up__spout", ""))
			rec.Wait(t, testmcp.CalledTool("spout"))
			var stuck []*testmcp.Pending
			for _, name := range []string{"aaaaaaaaaa", "bbbbbbbbbb"} {
				stuck = append(stuck, c.Begin("tools/call", testmcp.ToolParams("up__measure", large(name))))
			}
			testmcp.Eventually(t, "three calls under way", func() bool {
				return p.Metrics().Sum("mcp_proxy_requests_in_flight", "upstream", "up") == 3
			})
			rec.Signal("spout")
			if got := spout.Final().Text(); got != "spouted" {
				t.Errorf("the call that filled stdout gave %q", got)
			}
			for i, want := range []string{"aaaaaaaaaa", "bbbbbbbbbb"} {
				if a := stuck[i].Final(); a.Text() != want {
					t.Errorf("large arguments: %.300s, want %q", a.Raw, want)
				}
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("the upstream was started %d times", n)
			}
		})
	}
}

func TestAChildThatStopsReadingCostsNoMoreThanTheDeadline(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
				"up": way.Entry(t, rec, "deaf", nil, `"call_timeout":"1s"`, `"restart":{"initial_delay":"10ms"}`),
			}))
			c := p.Client(testmcp.Legacy)
			asleep := c.Begin("tools/call", testmcp.ToolParams("up__hang", ""))
			rec.Wait(t, testmcp.CalledTool("hang"))
			// The first of these is stuck in the middle of its line, the second never gets its turn.
			half := c.Begin("tools/call", testmcp.ToolParams("up__measure", large("half")))
			behind := c.Begin("tools/call", testmcp.ToolParams("up__measure", large("behind")))
			for what, call := range map[string]*testmcp.Pending{"hanging": asleep, "half written": half, "waiting": behind} {
				a := call.Final()
				if reason := a.Err().At("data", "reason").Str(); a.Code() != -32603 || reason != "timeout" && reason != "uncertain" && reason != "unavailable" {
					t.Errorf("%s: %.300s", what, a.Raw)
				}
				if a.Took > 10*time.Second {
					t.Errorf("%s: answered after %v, and call_timeout is 1s", what, a.Took)
				}
			}
			// Half a line spoils the stream for good, so there is a new process.
			rec.WaitN(t, 2, testmcp.Is(testmcp.Start))
			testmcp.Eventually(t, "a connection", func() bool { return stdio.UpstreamStatus(p, "up").At("state").Str() == "ready" })
			if a := c.CallTool("up__measure", `{"text":"once more!"}`); a.Text() != "once more!" {
				t.Errorf("the new process gave %.300s", a.Raw)
			}
			if n := rec.Count(testmcp.CalledTool("measure")); n != 1 {
				t.Errorf("%d calls reached a process, want only the last", n)
			}
		})
	}
}
