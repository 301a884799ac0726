package life

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// chatty writes much to stderr in each call, and can close its stdin while it lives on.
var _ = testmcp.Register("chatty", func(args []string) *testmcp.Server {
	s := testmcp.Basic("chatty")
	s.Era = stdio.Era(args)
	flood := func(n int, lines bool) testmcp.Handler {
		return func(c *testmcp.Call) {
			c.Process().FloodStderr(n, lines)
			c.Text("done")
		}
	}
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("lines", flood(256<<10, true)),
		testmcp.SimpleTool("no-lines", flood(256<<10, false)),
		testmcp.SimpleTool("little", flood(1<<10, true)),
		testmcp.SimpleTool("shut", func(c *testmcp.Call) {
			c.Text("shut")
			c.Process().CloseStdin()
			c.Note("stdin is closed")
			c.Process().Hang()
		}),
	)
	return s
})

func TestStderrIsAlwaysRead(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "chatty", nil)}))
			c := p.Client(testmcp.Modern)
			tools := []string{"lines", "no-lines"}
			for range 100 {
				tools = append(tools, "little")
			}
			for _, tool := range tools {
				if a := c.CallTool("up__"+tool, ""); a.Text() != "done" {
					t.Fatalf("%s gives %.300s", tool, a.Raw)
				}
			}
			if n := len(stdio.UpstreamStatus(p, "up").At("stderr").Items()); n == 0 || n > 200 {
				t.Errorf("%d lines are kept", n)
			}
			if n := len(p.Log()); n > 2000 {
				t.Errorf("the log has %d lines", n)
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
}

// A child that has closed its stdin cannot be written to. That is no end of the program, and the child is replaced.
func TestAChildThatClosesItsStdinIsReplaced(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("chatty", []string{"legacy"}, `"restart":{"initial_delay":"10ms"}`)}))
	c := p.Client(testmcp.Legacy)
	if a := c.CallTool("up__shut", ""); a.Text() != "shut" {
		t.Fatalf("shutting gives %.300s", a.Raw)
	}
	rec.Wait(t, testmcp.Noted("stdin is closed"))
	big := strings.Repeat("x", 1<<20)
	a := c.CallTool("up__echo", `{"text":`+testmcp.Quote(big)+`}`)
	// It has not reached the server, so it may be made again, if the next one is there in time.
	if reason := a.Err().At("data", "reason").Str(); a.Text() != big && (reason != "unavailable" || a.Err().At("data", "upstream").Str() != "up") {
		t.Errorf("the call that cannot be written gives %.300s", a.Raw)
	}
	rec.WaitN(t, 2, testmcp.Is(testmcp.Start))
	ready(t, p, "up")
	if a := c.CallTool("up__echo", `{"text":"x"}`); a.Text() != "x" {
		t.Errorf("afterwards: %.300s", a.Raw)
	}
}

// single does one thing at a time: while a call runs it answers nothing, no ping either.
var _ = testmcp.Register("single", func(args []string) *testmcp.Server {
	s := testmcp.Basic("single")
	s.Era, s.Serial, s.Capabilities = stdio.Era(args), true, `{"tools":{}}` // nothing that it would have to announce meanwhile
	return s
})

func TestProbesLeaveABusyServerAlone(t *testing.T) {
	for name, method := range map[string]string{"legacy": "ping", "modern": "server/discover"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy, idle := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
				"busy": busy.Entry("single", []string{name}, `"probe_interval":"20ms"`),
				"idle": idle.Entry("single", []string{name}, `"probe_interval":"20ms"`),
			}))
			ready(t, p, "busy")
			ready(t, p, "idle")
			call := p.Client(testmcp.Legacy).Begin("tools/call", testmcp.ToolParams("busy__wait", `{"signal":"done"}`))
			busy.Wait(t, testmcp.CalledTool("wait"))
			before := busy.Count(testmcp.Received(method))
			// The other one is probed as often as it takes to be sure that this one would have been.
			idle.WaitN(t, idle.Count(testmcp.Received(method))+100, testmcp.Received(method))
			if n := busy.Count(testmcp.Received(method)); n != before {
				t.Errorf("%d probes during a call", n-before)
			}
			busy.Signal("done")
			if a := call.Final(); a.Text() != "waited" {
				t.Errorf("the call gives %.300s", a.Raw)
			}
			for id, rec := range map[string]*testmcp.Recorder{"busy": busy, "idle": idle} {
				if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
					t.Errorf("%s was started %d times", id, n)
				}
				if st := stdio.UpstreamStatus(p, id).At("state").Str(); st != "ready" {
					t.Errorf("%s is %s", id, st)
				}
			}
		})
	}
}
