package catalog

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = behaviour("patient", func() *testmcp.Server {
	s := testmcp.Basic("patient")
	s.Tools = append(s.Tools,
		// late answers all the same, once it has been told that nobody wants the answer.
		testmcp.SimpleTool("late", func(c *testmcp.Call) {
			<-c.Context().Done()
			c.Text("too late")
		}),
		testmcp.SimpleTool("steady", steady),
	)
	return s
})

// atOnce is how soon a server hears that a call was given up. It is far more than it takes, as the machine may be busy.
const atOnce = time.Second

func isCancelOf(call testmcp.Record) func(testmcp.Record) bool {
	return func(r testmcp.Record) bool {
		return r.Kind == testmcp.Cancel && r.PID == call.PID && string(r.ID) == string(call.Frame.At("id"))
	}
}

// newest gives the record of the call of that tool that came after the first n.
func newest(t *testing.T, rec *testmcp.Recorder, n int, tool string) testmcp.Record {
	t.Helper()
	return rec.WaitN(t, n+1, testmcp.CalledTool(tool))[n]
}

// quickStreams makes responses begin while a call is under way, so that a client can close them.
const quickStreams = `{"stream_after":"20ms"}`

func TestACancelReachesTheOneServerUnderItsOwnID(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", quickStreams)
	for _, e := range eras {
		for i, k := range kinds {
			t.Run(e.name+" of "+k.name, func(t *testing.T) {
				c := s.Client(e.era)
				other := kinds[(i+1)%len(kinds)]
				before, quiet := s.recs[k.name].Count(testmcp.CalledTool("hang")), s.recs[other.name].Count(testmcp.Is(testmcp.Cancel))
				cancelledBefore := s.Metrics().Sum("mcp_proxy_cancellations_total", "upstream", k.name, "cause", "client")
				held := c.Send("101", "tools/call", testmcp.ToolParams(k.tool("hang"), ""))
				call := newest(t, s.recs[k.name], before, "hang")
				if text := c.CallTool(other.tool("echo"), `{"text":"quick"}`).Text(); text != "quick" {
					t.Errorf("the call beside it gave %q", text)
				}
				began := time.Now()
				c.Cancel(held)
				heard := s.recs[k.name].Wait(t, isCancelOf(call))
				if took := heard.Time.Sub(began); took > atOnce {
					t.Errorf("the server heard of it after %v", took)
				}
				if !held.WaitOver() {
					t.Error("the client's response is still open")
				}
				if n := s.recs[other.name].Count(testmcp.Is(testmcp.Cancel)); n != quiet {
					t.Errorf("%s heard of %d cancels that are not its own", other.name, n-quiet)
				}
				checkFreed(t, s, c, k, cancelledBefore+1)
			})
		}
	}
}

// checkFreed tells whether a cancelled call is counted, is not under way any more, and has not cost the connection.
func checkFreed(t *testing.T, s stage, c *testmcp.Client, k kind, cancelled float64) {
	t.Helper()
	testmcp.Eventually(t, "end of the call in the metrics", func() bool {
		m := s.Metrics()
		return m.Sum("mcp_proxy_requests_in_flight", "upstream", k.name) == 0 &&
			m.Sum("mcp_proxy_cancellations_total", "upstream", k.name, "cause", "client") == cancelled &&
			m.Sum("mcp_proxy_requests_total", "upstream", k.name, "outcome", "cancelled") == cancelled
	})
	if text := c.CallTool(k.tool("echo"), `{"text":"still here"}`).Text(); text != "still here" {
		t.Errorf("the next call gave %q", text)
	}
	if n := s.recs[k.name].Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("the server was started %d times", n)
	}
	if n := s.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", k.name); n != 0 {
		t.Errorf("%v restarts are counted", n)
	}
}

func TestOfTwoCallsWithIDsThatLookAlikeOneIsCancelled(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", quickStreams)
	for _, e := range eras {
		for _, k := range kinds {
			for _, victim := range []string{`101`, `"101"`} {
				t.Run(e.name+" of "+k.name+" "+victim, func(t *testing.T) {
					c, rec := s.Client(e.era), s.recs[k.name]
					streams, calls := map[string]*testmcp.Stream{}, map[string]testmcp.Record{}
					for _, id := range []string{`101`, `"101"`} {
						before := rec.Count(testmcp.CalledTool("wait"))
						args := `{"signal":` + testmcp.Quote(e.name+victim+id) + `}`
						streams[id] = c.Send(id, "tools/call", testmcp.ToolParams(k.tool("wait"), args))
						calls[id] = newest(t, rec, before, "wait")
					}
					c.Cancel(streams[victim])
					rec.Wait(t, isCancelOf(calls[victim]))
					for id, st := range streams {
						if id == victim {
							continue
						}
						rec.Signal(e.name + victim + id)
						if a := st.Final(); a.Text() != "waited" || string(a.ID) != id {
							t.Errorf("the call that goes on gave %s", a.Raw)
						}
						if rec.Count(isCancelOf(calls[id])) != 0 {
							t.Errorf("both calls were cancelled")
						}
					}
				})
			}
		}
	}
}

func TestAnAnswerAfterTheCancelIsLeftAside(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", quickStreams)
	for _, e := range eras {
		for _, k := range kinds {
			c, rec := s.Client(e.era), s.recs[k.name]
			before := rec.Count(testmcp.CalledTool("late"))
			held := c.Start("tools/call", testmcp.ToolParams(k.tool("late"), ""))
			call := newest(t, rec, before, "late")
			c.Cancel(held)
			rec.Wait(t, isCancelOf(call))
			rec.Wait(t, func(r testmcp.Record) bool {
				return r.Kind == testmcp.Out && string(r.ID) == string(call.ID) && r.Time.After(call.Time) && strings.Contains(string(r.Frame), "too late")
			})
			if text := c.CallTool(k.tool("echo"), `{"text":"mine"}`).Text(); text != "mine" {
				t.Errorf("%s of %s: the next call got %q", e.name, k.name, text)
			}
			if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
				t.Errorf("%s was started %d times", k.name, n)
			}
		}
	}
}

// A client of the newer era cancels by closing the request, also while nothing of the response has come.
func TestARequestThatIsClosedBeforeItsResponseBeginsIsCancelled(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", "")
	for _, k := range kinds {
		c := s.Client(testmcp.Modern)
		params := testmcp.ToolParams(k.tool("hang"), "")
		ctx, closeRequest := context.WithCancel(t.Context())
		defer closeRequest()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(c.Body("101", "tools/call", params)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.HeadersFor("tools/call", params)
		tr := &http.Transport{DisableKeepAlives: true}
		over := make(chan error, 1)
		go func() {
			resp, err := tr.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			over <- err
		}()
		call := s.recs[k.name].Wait(t, testmcp.CalledTool("hang"))
		closeRequest()
		if err := <-over; err == nil {
			t.Error("the response had begun")
		}
		s.recs[k.name].Wait(t, isCancelOf(call))
		checkFreed(t, s, c, k, 1)
	}
}

func TestACancelForAnotherSessionsCallDoesNothing(t *testing.T) {
	t.Parallel()
	s := startAll(t, "patient", quickStreams)
	for _, k := range kinds {
		a, b := s.Client(testmcp.Legacy), s.Client(testmcp.Legacy)
		held := a.Send("101", "tools/call", testmcp.ToolParams(k.tool("wait"), `{"signal":"go"}`))
		s.recs[k.name].Wait(t, testmcp.CalledTool("wait"))
		if status := b.CancelID("101"); status != http.StatusAccepted {
			t.Errorf("the cancel of another session is answered with HTTP %d", status)
		}
		b.CallTool(k.tool("echo"), "") // a round trip behind the cancel
		s.recs[k.name].Signal("go")
		if text := held.Final().Text(); text != "waited" {
			t.Errorf("%s: the call gave %q", k.name, text)
		}
		if n := s.recs[k.name].Count(testmcp.Is(testmcp.Cancel)); n != 0 {
			t.Errorf("%s heard of %d cancels", k.name, n)
		}
	}
}

func TestCancelledCallsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	const many = 30
	s := startAll(t, "patient", quickStreams)
	for _, e := range eras {
		for _, k := range kinds {
			s.Client(e.era).CallTool(k.tool("echo"), "")
		}
	}
	before := s.Metrics().Sum("go_goroutines")
	for _, e := range eras {
		for _, k := range kinds {
			c, rec := s.Client(e.era), s.recs[k.name]
			seen := rec.Count(testmcp.CalledTool("hang"))
			var held []*testmcp.Stream
			for range many {
				held = append(held, c.Start("tools/call", testmcp.ToolParams(k.tool("hang"), "")))
			}
			calls := rec.WaitN(t, seen+many, testmcp.CalledTool("hang"))[seen:]
			for _, st := range held {
				c.Cancel(st)
			}
			for _, call := range calls {
				rec.Wait(t, isCancelOf(call))
			}
			c.Reconnect()
		}
	}
	testmcp.Eventually(t, "end of all that belonged to the calls", func() bool {
		m := s.Metrics()
		return m.Sum("mcp_proxy_requests_in_flight") == 0 && m.Sum("go_goroutines") < before+many
	})
}
