package reload

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// One reload adds d, removes b, changes c and leaves a alone, while calls run at a, b and c.
func TestAReloadTouchesOnlyWhatHasChanged(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "b", "c", "d")
	p := run(t, s.with("", "a", "b", "c"))
	c := p.Client(testmcp.Legacy)
	news := c.Get("")
	fresh := p.Client(testmcp.Modern).Listen(`{"toolsListChanged":true}`)
	fresh.WaitMethod("notifications/subscriptions/acknowledged")
	before := map[string]int{}
	held := map[string]*testmcp.Pending{}
	for _, name := range []string{"a", "b", "c"} {
		before[name] = s.pid(t, name)
		held[name] = c.Begin("tools/call", testmcp.ToolParams(name+"__wait", `{"signal":"go"}`))
		s[name].Wait(t, testmcp.CalledTool("wait"))
	}
	p.WriteConfig(testmcp.Config("", map[string]string{
		"a": s["a"].Entry("basic", []string{"a"}),
		"c": s["c"].Entry("basic", []string{"c"}, `"call_timeout":"90s"`),
		"d": s["d"].Entry("basic", []string{"d"}),
	}))
	if status, body := post(t, p, ""); status != 200 {
		t.Fatalf("HTTP %d %s", status, body)
	}
	names := c.ToolNames()
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "b__") }) || !slices.Contains(names, "c__echo") {
		t.Errorf("after the reload the tools are %q", names)
	}
	for _, stream := range []*testmcp.Stream{news, fresh} {
		stream.WaitMethod("notifications/tools/list_changed")
	}
	s["c"].WaitN(t, 2, testmcp.Is(testmcp.Start)) // beside the old one, whose call runs
	for name, h := range held {
		s[name].Signal("go")
		if text := h.Final().Text(); text != "waited" {
			t.Errorf("the call at %s that ran over the reload gives %q", name, text)
		}
	}
	for _, tool := range []string{"a__echo", "c__echo", "d__echo"} {
		if text := c.CallTool(tool, `{"text":"x"}`).Text(); text != "x" {
			t.Errorf("%s gives %q", tool, text)
		}
	}
	if code := c.CallTool("b__echo", "").Code(); code != -32602 {
		t.Errorf("a tool of a server that was removed gives the code %d", code)
	}
	s["b"].WaitGone(t)
	s["c"].WaitFor(t, "the end of the old process", func() bool { return !slices.Contains(s["c"].Live(), before["c"]) })
	if n := s["a"].Count(testmcp.Is(testmcp.Start)); n != 1 || !slices.Equal(s["a"].Live(), []int{before["a"]}) {
		t.Errorf("the server that was not changed has been started %d times", n)
	}
	for what, stream := range map[string]*testmcp.Stream{"GET": news, "listen": fresh} {
		if n := count(stream, "notifications/tools/list_changed"); n != 1 {
			t.Errorf("%s: told %d times", what, n)
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "c", "reason", "reload"); n != 1 {
		t.Errorf("%v restarts of c are counted", n)
	}
	testmcp.Eventually(t, "end of the series of b", func() bool {
		for _, name := range p.Metrics().Names() {
			if len(p.Metrics().Find(name, "upstream", "b")) > 0 {
				return false
			}
		}
		return true
	})
}

func count(s *testmcp.Stream, method string) (n int) {
	for _, e := range s.Events() {
		if e.Message().Method == method {
			n++
		}
	}
	return n
}

// A server that is still starting is stopped when it is removed, and does not come back.
func TestAServerIsRemovedWhileItStarts(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "mute")
	mute := s["mute"].Entry("mute", nil)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"a": s["a"].Entry("basic", nil), "mute": mute}),
		testmcp.WithEnv("GORACE=atexit_sleep_ms=0"), testmcp.WithoutReady())
	s["mute"].Wait(t, testmcp.Is(testmcp.Start))
	p.WriteConfig(s.with("", "a"))
	p.Reload()
	s["mute"].WaitGone(t)
	if text := p.Client(testmcp.Legacy).CallTool("a__echo", `{"text":"x"}`).Text(); text != "x" {
		t.Errorf("the other server gives %q", text)
	}
	if got := p.Status().At("upstreams"); strings.Contains(string(got), `"mute"`) {
		t.Errorf("the status knows it still: %s", got)
	}
}

var _ = testmcp.Register("mute", func([]string) *testmcp.Server {
	m := testmcp.Basic("mute")
	m.On = map[string]testmcp.Handler{"server/discover": testmcp.Ignores, "initialize": testmcp.Ignores}
	return m
})

// However often servers come and go, what is left is what is configured.
func TestManyReloadsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a", "b")
	p := run(t, s.with("", "a", "b"))
	c := p.Client(testmcp.Legacy)
	pid := s.pid(t, "a")
	echo := func(name string) {
		if text := c.CallTool(name+"__echo", `{"text":"x"}`).Text(); text != "x" {
			t.Errorf("%s gives %q", name, text)
		}
	}
	echo("a")
	echo("b")
	before, goroutines := len(p.Metrics()), p.Metrics().Sum("go_goroutines")
	for i := range 50 {
		names := []string{"a", "b"}[:1+i%2]
		p.WriteConfig(s.with("", names...))
		if status, body := post(t, p, ""); status != 200 {
			t.Fatalf("HTTP %d %s", status, body)
		}
		echo("a")
	}
	testmcp.Eventually(t, "second server", func() bool { return slices.Contains(c.ToolNames(), "b__echo") })
	echo("b")
	testmcp.Eventually(t, "end of the others", func() bool { return len(s["b"].Live()) == 1 })
	if !slices.Equal(s["a"].Live(), []int{pid}) {
		t.Errorf("the server that was never changed runs as %v", s["a"].Live())
	}
	if n := len(p.Metrics()); n > before+2 {
		t.Errorf("%d series have become %d", before, n)
	}
	testmcp.Eventually(t, "end of goroutines", func() bool { return p.Metrics().Sum("go_goroutines") < goroutines+20 })
}
