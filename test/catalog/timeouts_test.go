package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// steady reports progress at even steps: args are the length of a step and how many there are, 0 for no end.
func steady(c *testmcp.Call) {
	step, n := time.Duration(c.Args("ms").Int())*time.Millisecond, c.Args("steps").Int()
	tick := time.NewTicker(step)
	defer tick.Stop()
	for i := 1; n == 0 || i <= n; i++ {
		select {
		case <-tick.C:
			c.Progress(float64(i), float64(n), "")
		case <-c.Context().Done():
			return
		}
	}
	c.Text("done")
}

// checkTimedOut tells whether an answer is the one for a call that took too long, and no sooner than it should.
func checkTimedOut(t *testing.T, a testmcp.Answer, k kind, tool, limit string, least time.Duration) {
	t.Helper()
	data := a.Err().At("data")
	if a.Code() != -32603 || a.Status != 200 || data.At("reason").Str() != "timeout" || data.At("upstream").Str() != k.name || !data.Has("request_id") {
		t.Errorf("HTTP %d %s %v", a.Status, a.Raw, a.Error)
	}
	message := a.Err().At("message").Str()
	if !strings.HasPrefix(message, k.name+"::"+tool+": ") || !strings.Contains(message, limit) {
		t.Errorf("the message is %q", message)
	}
	if a.Took < least {
		t.Errorf("it was given up after %v, before its time", a.Took)
	}
}

func TestASilentCallIsGivenUpAlikeForEveryKindOfServer(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", "", `"call_timeout":"400ms"`)
	for _, e := range eras {
		for _, k := range kinds {
			t.Run(e.name+" of "+k.name, func(t *testing.T) {
				c, rec := s.Client(e.era), s.recs[k.name]
				before := rec.Count(testmcp.CalledTool("hang"))
				held := c.Begin("tools/call", testmcp.ToolParams(k.tool("hang"), ""))
				call := newest(t, rec, before, "hang")
				checkTimedOut(t, held.Final(), k, "hang", "call_timeout", 400*time.Millisecond)
				rec.Wait(t, isCancelOf(call))
				if text := c.CallTool(k.tool("echo"), `{"text":"still here"}`).Text(); text != "still here" {
					t.Errorf("the next call gave %q", text)
				}
				if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
					t.Errorf("the server was started %d times", n)
				}
			})
		}
	}
	m := s.Metrics()
	for _, k := range kinds {
		for name, labels := range map[string][]string{
			"mcp_proxy_requests_total":      {"upstream", k.name, "method", "tools/call", "outcome", "timeout"},
			"mcp_proxy_cancellations_total": {"upstream", k.name, "cause", "inactivity"},
		} {
			if n := m.Sum(name, labels...); n != float64(len(eras)) {
				t.Errorf("%s%v is %v, want %d", name, labels, n, len(eras))
			}
		}
		if n := m.Sum("mcp_proxy_upstream_restarts_total", "upstream", k.name); n != 0 {
			t.Errorf("%v restarts of %s are counted", n, k.name)
		}
	}
}

// A call that reports progress may take longer than call_timeout, whether the client has asked for progress or not, but
// never longer than max_call_time.
func TestProgressHoldsACallOpenUpToItsLongestTime(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", "", `"call_timeout":"1s"`, `"max_call_time":"2500ms"`)
	type held struct {
		name    string
		k       kind
		asked   bool
		short   *testmcp.Pending
		endless *testmcp.Pending
		call    testmcp.Record
	}
	var all []held
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			for meta, asked := range map[string]bool{``: false, `,"_meta":{"progressToken":"mine"}`: true} {
				params := func(steps string) string {
					return `{"name":"` + k.tool("steady") + `","arguments":{"ms":150,"steps":` + steps + `}` + meta + `}`
				}
				h := held{name: e.name + " of " + k.name + meta, k: k, asked: asked, short: c.Begin("tools/call", params("10"))}
				before := s.recs[k.name].Count(endless)
				h.endless = c.Begin("tools/call", params("0"))
				h.call = s.recs[k.name].WaitN(t, before+1, endless)[before]
				all = append(all, h)
			}
		}
	}
	for _, h := range all {
		t.Run(h.name, func(t *testing.T) {
			a := h.short.Final()
			if a.Text() != "done" {
				t.Errorf("the call with progress for 1.5 s gave %s %v", a.Raw, a.Error)
			}
			checkReports(t, a, h.asked, 10)
			checkTimedOut(t, h.endless.Final(), h.k, "steady", "max_call_time", 2500*time.Millisecond)
			s.recs[h.k.name].Wait(t, isCancelOf(h.call))
		})
	}
	if n := s.Metrics().Sum("mcp_proxy_cancellations_total", "cause", "max_time"); n != float64(len(all)) {
		t.Errorf("%v calls are counted as too long, want %d", n, len(all))
	}
}

func endless(r testmcp.Record) bool {
	return testmcp.CalledTool("steady")(r) && r.Frame.At("params", "arguments", "steps").Int() == 0
}

// checkReports tells whether a client got the progress that it asked for under its own token, and otherwise none.
func checkReports(t *testing.T, a testmcp.Answer, asked bool, steps int) {
	t.Helper()
	last := 0
	for _, e := range a.Before {
		m := e.Message()
		if m.Method != "notifications/progress" {
			continue
		}
		if got := m.Params.At("progressToken").Str(); got != "mine" {
			t.Errorf("progress came under the token %q", got)
		}
		if n := m.Params.At("progress").Int(); n > last {
			last = n
		} else {
			t.Errorf("progress %d came after %d", n, last)
		}
	}
	if want := map[bool]int{true: steps}[asked]; last != want {
		t.Errorf("the last progress was %d, want %d", last, want)
	}
}
