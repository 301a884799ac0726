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

// hung is a call that is under way and silent, and what its server saw of it.
type hung struct {
	name   string
	k      kind
	client *testmcp.Client
	held   *testmcp.Pending
	call   testmcp.Record
}

// hang begins a call at every kind of server by clients of both eras.
func hang(t *testing.T, s stage, tool, params string) (all []hung) {
	t.Helper()
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			before := s.recs[k.name].Count(testmcp.CalledTool(tool))
			h := hung{name: e.name + " of " + k.name, k: k, client: c, held: c.Begin("tools/call", `{"name":"`+k.tool(tool)+`",`+params+`}`)}
			h.call = newest(t, s.recs[k.name], before, tool)
			all = append(all, h)
		}
	}
	return all
}

// The tests of time limits run alone: what others do beside them takes time too.

func TestASilentCallIsGivenUpAlikeForEveryKindOfServer(t *testing.T) {
	s := startAll(t, "patient", "", `"call_timeout":"1s"`)
	for _, h := range hang(t, s, "hang", `"arguments":{}`) {
		t.Run(h.name, func(t *testing.T) {
			checkTimedOut(t, h.held.Final(), h.k, "hang", "call_timeout", time.Second)
			rec := s.recs[h.k.name]
			rec.Wait(t, isCancelOf(h.call))
			if text := h.client.CallTool(h.k.tool("echo"), `{"text":"still here"}`).Text(); text != "still here" {
				t.Errorf("the next call gave %q", text)
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("the server was started %d times", n)
			}
		})
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
	s := startAll(t, "patient", "", `"call_timeout":"1500ms"`, `"max_call_time":"3s"`)
	const mine = `,"_meta":{"progressToken":"mine"}`
	short := map[bool][]hung{}
	for asked, meta := range map[bool]string{false: ``, true: mine} {
		short[asked] = hang(t, s, "steady", `"arguments":{"ms":150,"steps":12}`+meta)
	}
	endless := append(hang(t, s, "steady", `"arguments":{"ms":150}`), hang(t, s, "steady", `"arguments":{"ms":150}`+mine)...)
	for asked, all := range short {
		for _, h := range all {
			a := h.held.Final()
			if a.Text() != "done" {
				t.Errorf("%s: the call with progress for 1.8 s gave %s %v", h.name, a.Raw, a.Error)
			}
			checkReports(t, a, asked, 12)
		}
	}
	for _, h := range endless {
		checkTimedOut(t, h.held.Final(), h.k, "steady", "max_call_time", 3*time.Second)
		s.recs[h.k.name].Wait(t, isCancelOf(h.call))
	}
	if n := s.Metrics().Sum("mcp_proxy_cancellations_total", "cause", "max_time"); n != float64(len(endless)) {
		t.Errorf("%v calls are counted as too long, want %d", n, len(endless))
	}
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
