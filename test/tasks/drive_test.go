package tasks

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A client that knows no tasks calls a tool that its server runs only as a task: the proxy follows the task, and the
// client sees a call like any other.
func TestACallIsFollowedToTheEndOfItsTask(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, e := range eras {
		for _, k := range kinds {
			t.Run(e.name+" of "+k.name, func(t *testing.T) {
				c := s.client(t, e.era, knowsNone)
				for tool, want := range map[string]string{
					"slow":   `"content":[{"type":"text","text":"done "}], "x":12345678901234567890 }`,
					"fails":  `"content":[{"type":"text","text":"failed as asked"}],"isError":true`,
					"needs":  `"text":"done \"Ann\""`,
					"breaks": `"error":` + finalError,
					"wished": `"text":"at once"`,
				} {
					a := c.CallTool(k.tool(tool), "")
					if !strings.Contains(string(a.Raw), want) {
						t.Errorf("%s: %s, want %s", tool, a.Raw, want)
					}
					if raw := string(a.Raw); strings.Contains(raw, "taskId") || strings.Contains(raw, relatedTask) {
						t.Errorf("%s: the client is shown a task: %s", tool, raw)
					}
				}
				for _, q := range c.Asked() {
					if strings.Contains(string(q.Params), relatedTask) {
						t.Errorf("the client is asked in the name of a task: %s", q.Params)
					}
				}
			})
		}
	}
	for _, k := range kinds {
		if n := s.recs[k.name].Count(testmcp.Received("tasks/cancel")); n != 0 {
			t.Errorf("%s: %d tasks that had ended were cancelled", k.name, n)
		}
		named := func(r testmcp.Record) bool { return r.Kind == testmcp.Note && r.Text == "named " }
		if n := s.recs[k.name].Count(named); n != 0 {
			t.Errorf("%s: %d answers do not say which task they are for", k.name, n)
		}
	}
}

func TestProgressOfATaskReachesItsCaller(t *testing.T) {
	t.Parallel()
	s := startAll(t, `{"stream_after":"1ms"}`)
	for _, e := range eras {
		c := s.client(t, e.era, knowsNone)
		for _, k := range kinds {
			if k.web {
				continue // a modern server has no way to tell it, and a legacy one tells it on another stream
			}
			a := c.Start("tools/call", `{"_meta":{"progressToken":"mine"},"name":"`+k.tool("slow")+`","arguments":{}}`).Final()
			heard := false
			for _, ev := range a.Before {
				heard = heard || ev.Message().Method == "notifications/progress" && ev.Message().Params.At("progressToken").Str() == "mine"
			}
			if !heard {
				t.Errorf("%s of %s: no progress before %s", e.name, k.name, a.Raw)
			}
		}
	}
}

// A client that gives up its call gives up the task.
func TestACancelledCallCancelsItsTask(t *testing.T) {
	t.Parallel()
	s := startAll(t, `{"stream_after":"20ms"}`)
	for _, e := range eras {
		for _, k := range kinds {
			t.Run(e.name+" of "+k.name, func(t *testing.T) {
				c, rec := s.client(t, e.era, knowsNone), s.recs[k.name]
				looks, before := rec.Count(testmcp.Received("tasks/get")), rec.Count(testmcp.Received("tasks/cancel"))
				held := c.Start("tools/call", testmcp.ToolParams(k.tool("forever"), ""))
				rec.WaitN(t, looks+2, testmcp.Received("tasks/get"))
				c.Cancel(held)
				rec.WaitN(t, before+1, testmcp.Received("tasks/cancel"))
				testmcp.Eventually(t, "end of the call in the metrics", func() bool {
					return s.Metrics().Sum("mcp_proxy_requests_in_flight", "upstream", k.name) == 0
				})
			})
		}
	}
}

func TestATaskHasBounds(t *testing.T) {
	t.Parallel()
	for _, b := range []struct{ setting, names string }{
		{`"tasks":{"timeout":"300ms"}`, "tasks.timeout"},
		{`"tasks":{"max_attempts":3}`, "tasks.max_attempts"},
	} {
		s := startAll(t, "", b.setting)
		for _, e := range eras {
			for _, k := range kinds {
				c, rec := s.client(t, e.era, knowsNone), s.recs[k.name]
				before := rec.Count(testmcp.Received("tasks/cancel"))
				a := c.CallTool(k.tool("forever"), "")
				if a.Code() != -32603 || !strings.Contains(string(a.Raw), b.names) || a.Err().At("data", "reason").Str() != "timeout" {
					t.Errorf("%s of %s: %s, want an error that names %s", e.name, k.name, a.Raw, b.names)
				}
				rec.WaitN(t, before+1, testmcp.Received("tasks/cancel"))
			}
		}
	}
}

func TestFollowingTasksCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := startAll(t, "", `"tasks":{"enabled":false}`)
	for _, e := range eras {
		for _, k := range kinds {
			c := s.client(t, e.era, knowsNone)
			a := c.CallTool(k.tool("slow"), "")
			if a.Code() != -32603 || !strings.Contains(string(a.Raw), "tasks.enabled") {
				t.Errorf("%s of %s: %s, want an error that names tasks.enabled", e.name, k.name, a.Raw)
			}
			if text := c.CallTool(k.tool("wished"), "").Text(); text != "at once" {
				t.Errorf("%s of %s: a tool that need not be a task gave %q", e.name, k.name, text)
			}
		}
	}
}

// A client that cannot be asked does not hang: the server is told so, and the call ends.
func TestATaskThatNeedsWhatNobodyCanGiveEnds(t *testing.T) {
	t.Parallel()
	s := startAll(t, "")
	for _, e := range eras {
		for _, k := range kinds {
			a := s.client(t, e.era, "{}").CallTool(k.tool("needs"), "")
			if text := a.Text(); text != "done decline" {
				t.Errorf("%s of %s: %s", e.name, k.name, a.Raw)
			}
		}
	}
}

// A client that is told that input is required and never comes back has given up its call, and the task with it.
func TestATaskWhoseClientDoesNotComeBackIsCancelled(t *testing.T) {
	t.Parallel()
	s := startAll(t, "", `"elicitation":{"timeout":"200ms"}`)
	for _, k := range kinds {
		a := s.client(t, testmcp.Modern, knowsNone).Start("tools/call", testmcp.ToolParams(k.tool("needs"), "")).Final()
		if a.Result().At("resultType").Str() != "input_required" {
			t.Fatalf("%s: %s", k.name, a.Raw)
		}
		s.recs[k.name].Wait(t, testmcp.Received("tasks/cancel"))
	}
}

// The same over the pipes of a client that starts the proxy itself.
func TestACallOverPipesIsFollowedToTheEndOfItsTask(t *testing.T) {
	t.Parallel()
	for _, e := range eras {
		for _, word := range []string{"legacy", "modern"} {
			c := testmcp.StartStdio(t, e.era, testmcp.Config("", map[string]string{"one": testmcp.NewRecorder(t).Entry("tasks", []string{word})}))
			c.Capabilities = knowsNone
			if text := c.Open().CallTool("one__slow", "").Result().At("content", 0, "text").Str(); text != "done " {
				t.Errorf("%s of a %s server gave %q", e.name, word, text)
			}
		}
	}
}
