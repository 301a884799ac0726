package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const toolsChanged = "notifications/tools/list_changed"

var _ = behaviour("restless", func() *testmcp.Server {
	s := testmcp.Basic("restless")
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("storm", func(c *testmcp.Call) {
			for range c.Args("n").Int() {
				c.Instance().Notify(toolsChanged, "")
			}
			c.Text("over")
		}),
		// reorder announces a change that is none: the same tools in another order.
		testmcp.SimpleTool("reorder", func(c *testmcp.Call) {
			tools := append(testmcp.Basic("restless").Tools, s.Tools[len(testmcp.Basic("restless").Tools):]...)
			slices.Reverse(tools)
			c.Instance().SetTools(tools...)
			c.Instance().Notify(toolsChanged, "")
			c.Text("reordered")
		}),
	)
	return s
})

func announced(s *testmcp.Stream, method string) int {
	n := 0
	for _, e := range s.Events() {
		if e.Message().Method == method {
			n++
		}
	}
	return n
}

func TestAStormOfAnnouncementsCausesFewListings(t *testing.T) {
	t.Parallel()
	s := startAll(t, "restless", "")
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rec, c := s.recs[k.name], s.Client(testmcp.Legacy)
			old, fresh := testmcp.Connect(t, s.Server(k.name), testmcp.Legacy).Get(""), testmcp.Connect(t, s.Server(k.name), testmcp.Modern).Listen(`{"toolsListChanged":true}`)
			fresh.WaitMethod("notifications/subscriptions/acknowledged")
			waitNews(t, rec, k)
			began := time.Now()
			if text := c.CallTool(k.tool("storm"), `{"n":1000}`).Text(); text != "over" {
				t.Fatalf("the storm gave %q", text)
			}
			c.CallTool(k.tool("reorder"), "")
			rec.WaitN(t, 2, testmcp.Received("tools/list"))
			c.CallTool(k.tool("change"), "")
			for what, stream := range map[string]*testmcp.Stream{"an old client": old, "a new client": fresh} {
				stream.WaitMethod(toolsChanged)
				if n := announced(stream, toolsChanged); n != 1 {
					t.Errorf("%s was told %d times of one change", what, n)
				}
			}
			if !slices.Contains(c.ToolNames(), k.tool("added1")) {
				t.Error("the new tool is not listed")
			}
			// One at the start, and then one a second at most.
			if n, most := rec.Count(testmcp.Received("tools/list")), 3+int(time.Since(began)/time.Second); n > most {
				t.Errorf("the server was asked for its tools %d times, want at most %d", n, most)
			}
			for _, e := range eras {
				if text := s.Client(e.era).CallTool(k.tool("added1"), "").Text(); text != "added" {
					t.Errorf("%s: the new tool gave %q", e.name, text)
				}
			}
		})
	}
}

// waitNews waits until the proxy listens for what the server announces outside of calls.
func waitNews(t *testing.T, rec *testmcp.Recorder, k kind) {
	t.Helper()
	switch {
	case k.era == testmcp.Modern:
		rec.Wait(t, testmcp.Received("subscriptions/listen"))
	case k.name == "web-old":
		rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "GET /mcp" })
	}
}

var _ = behaviour("echoing", func() *testmcp.Server {
	s := testmcp.Basic("echoing")
	s.Tools = append(s.Tools, testmcp.SimpleTool("announce", func(c *testmcp.Call) {
		c.Instance().Notify(toolsChanged, "")
		c.Text("announced")
	}))
	s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
		c.Default()
		c.Instance().Notify(toolsChanged, "")
	}}
	return s
})

func TestAServerThatAnnouncesAChangeAtEachListingIsNotAskedAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := startAll(t, "echoing", "")
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			rec := s.recs[k.name]
			old, fresh := testmcp.Connect(t, s.Server(k.name), testmcp.Legacy), testmcp.Connect(t, s.Server(k.name), testmcp.Modern)
			news, listen := old.Get(""), fresh.Listen(`{"toolsListChanged":true}`)
			listen.WaitMethod("notifications/subscriptions/acknowledged")
			waitNews(t, rec, k)
			old.CallTool("announce", "") // who listened too late for the first is told of the next
			first := len(rec.WaitN(t, 2, testmcp.Received("tools/list")))
			for range 20 {
				old.ToolNames()
				fresh.ToolNames()
			}
			lists := rec.WaitN(t, first+3, testmcp.Received("tools/list"))
			for i := 1; i < len(lists); i++ {
				// The pause is a second; what is measured is measured at the other end of a pipe.
				if pause := lists[i].Time.Sub(lists[i-1].Time); pause < 900*time.Millisecond {
					t.Errorf("it was asked again after %v", pause)
				}
			}
			if n := announced(news, toolsChanged); n != 0 {
				t.Errorf("an old client was told %d times of a change that is none", n)
			}
			// What a server insists on is passed on to new clients, a few times.
			if n := announced(listen, toolsChanged); n > 5 {
				t.Errorf("a new client was told %d times of a change that is none", n)
			}
		})
	}
}

func TestAChangeIsToldToThoseWhoSeeIt(t *testing.T) {
	t.Parallel()
	p := start(t, testmcp.Config(`{"profiles":{"fixed":{"servers":["one"],"tool_policy":{"expose":["echo"]}},"two":{"servers":["two"]}}}`, map[string]string{
		"one": testmcp.NewRecorder(t).Entry("restless", nil),
		"two": testmcp.NewRecorder(t).Entry("restless", nil, `"tool_policy":{"deny":["added*"]}`),
	}))
	all, c := p.Client(testmcp.Legacy).Get(""), p.Client(testmcp.Legacy)
	fixed := testmcp.Connect(t, p.Profile("fixed"), testmcp.Modern).Listen(`{"toolsListChanged":true}`)
	other := testmcp.Connect(t, p.Server("two"), testmcp.Modern).Listen(`{"toolsListChanged":true}`)
	for _, st := range []*testmcp.Stream{fixed, other} {
		st.WaitMethod("notifications/subscriptions/acknowledged")
	}
	c.CallTool("two__change", "") // hidden from everybody
	c.CallTool("one__change", "")
	all.WaitMethod(toolsChanged)
	testmcp.Eventually(t, "listing of the new tool", func() bool { return slices.Contains(c.ToolNames(), "one__added1") })
	for what, st := range map[string]*testmcp.Stream{"a profile without it": fixed, "another server": other} {
		if n := announced(st, toolsChanged); n != 0 {
			t.Errorf("%s was told of the change %d times", what, n)
		}
	}
	if n := announced(all, toolsChanged); n != 1 {
		t.Errorf("the aggregate was told of it %d times", n)
	}
}

// fragile lists once; from then on each process of it dies when it is asked for its tools.
var _ = testmcp.Register("fragile", func(args []string) *testmcp.Server {
	s := testmcp.Basic("fragile")
	s.Era = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}[args[0]]
	s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
		if _, err := os.Stat(args[1]); err == nil {
			c.Process().Crash()
		}
		_ = os.WriteFile(args[1], nil, 0o600)
		c.Default()
	}}
	return s
})

// A server that dies of being listed is not listed again and again, keeps what it was known for, and its coming and going is
// told to nobody.
func TestAServerThatDiesOfBeingListedMakesNoCircle(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := start(t, testmcp.Config("", map[string]string{
				"one": rec.Entry("fragile", []string{era, filepath.Join(t.TempDir(), "listed")}, `"restart":{"initial_delay":"200ms"}`),
			}))
			old, fresh := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
			names := old.ToolNames()
			news, listen := old.Get(""), fresh.Listen(`{"toolsListChanged":true}`)
			listen.WaitMethod("notifications/subscriptions/acknowledged")
			old.CallTool("one__crash", "")
			starts := rec.WaitN(t, 5, testmcp.Is(testmcp.Start))
			if took := starts[4].Time.Sub(starts[1].Time); took < 2500*time.Millisecond { // pauses of 0.4, 0.8 and 1.6 s, a tenth less at most
				t.Errorf("three starts more took %v", took)
			}
			for _, c := range []*testmcp.Client{old, fresh} {
				if got := c.ToolNames(); !slices.Equal(got, names) {
					t.Errorf("the tools are %q, before %q", got, names)
				}
			}
			for what, s := range map[string]*testmcp.Stream{"an old client": news, "a new client": listen} {
				if n := announced(s, toolsChanged); n != 0 {
					t.Errorf("%s was told %d times of a change", what, n)
				}
			}
		})
	}
}
