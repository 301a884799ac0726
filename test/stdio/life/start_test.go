package life

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// cold is slow to begin until the file of its second argument is there, as a launcher that downloads packages first. With
// "retry" it makes the file itself and never comes up in that run.
var _ = testmcp.Register("cold", func(args []string) *testmcp.Server {
	s := testmcp.Basic("cold")
	s.Era = stdio.Era(args)
	s.Start = func(p *testmcp.Process) {
		if _, err := os.Stat(args[1]); err == nil {
			return
		}
		p.Stderr("npm WARN deprecated this takes a while\n")
		p.Note("cold")
		if len(args) > 2 {
			_ = os.WriteFile(args[1], nil, 0o600)
			p.Hang()
		}
		p.Until("warm")
	}
	return s
})

func TestAColdStartHoldsUpNobodyAndIsAnnounced(t *testing.T) {
	t.Parallel()
	rec, good := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"200ms"}`, map[string]string{
		"cold": rec.Entry("cold", []string{"legacy", filepath.Join(t.TempDir(), "warm")}), "good": good.Entry("basic", nil),
	}))
	rec.Wait(t, testmcp.Noted("cold"))
	p.WaitTool("good__echo")
	c := p.Client(testmcp.Legacy)
	news := c.Get("")
	if names := strings.Join(c.ToolNames(), " "); strings.Contains(names, "cold__") || !strings.Contains(names, "good__echo") {
		t.Errorf("the tools are %s", names)
	}
	if st := stdio.UpstreamStatus(p, "cold"); st.At("state").Str() != "connecting" || st.At("last_error") != nil {
		t.Errorf("while it starts the status is %s", st)
	}
	rec.Signal("warm")
	news.WaitMethod("notifications/tools/list_changed")
	testmcp.Eventually(t, "tools of the cold one", func() bool { return strings.Contains(strings.Join(c.ToolNames(), " "), "cold__echo") })
	if a := c.CallTool("cold__echo", `{"text":"x"}`); a.Text() != "x" {
		t.Errorf("it gives %.300s", a.Raw)
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// A start that takes longer than its limit is given up and tried again without anybody's help.
func TestAColdStartBeyondItsLimitHealsByItself(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
		"cold": rec.Entry("cold", []string{"legacy", filepath.Join(t.TempDir(), "warm"), "retry"}, `"connect_timeout":"2s"`, `"restart":{"initial_delay":"50ms"}`),
	}))
	ready(t, p, "cold")
	if a := p.Client(testmcp.Legacy).CallTool("cold__echo", `{"text":"x"}`); a.Text() != "x" {
		t.Errorf("it gives %.300s", a.Raw)
	}
	why := stdio.UpstreamStatus(p, "cold").At("last_error", "message").Str()
	if !strings.Contains(why, "connect_timeout") || !strings.Contains(why, "this takes a while") {
		t.Errorf("the last error is %q", why)
	}
}

// Many calls for a server that rests start it once.
func TestManyCallsForAServerThatRestsStartItOnce(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("plain", []string{"legacy"}, `"idle_stop":"300ms"`)}))
	var clients []*testmcp.Client
	for range 5 {
		for _, era := range stdio.Eras {
			clients = append(clients, p.Client(era))
		}
	}
	testmcp.Eventually(t, "rest", func() bool { return stdio.UpstreamStatus(p, "up").At("state").Str() == "idle" })
	rec.WaitGone(t)
	before := rec.Count(testmcp.Is(testmcp.Start))
	var calls []*testmcp.Pending
	for range 5 {
		for _, c := range clients {
			calls = append(calls, c.Begin("tools/call", testmcp.ToolParams("up__wait", `{"signal":"all"}`)))
		}
	}
	rec.WaitN(t, len(calls), testmcp.CalledTool("wait"))
	rec.Signal("all")
	for _, call := range calls {
		if a := call.Final(); a.Text() != "waited" {
			t.Errorf("a call gives %.300s", a.Raw)
		}
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)) - before; n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// What a server takes to end, deaf to the end of its stdin and to SIGTERM, is not what its last caller waits for.
func TestAnAnswerDoesNotWaitForTheEndOfItsServer(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("tree", []string{"legacy"}, `"sharing":"session"`)}))
	ready(t, p, "up")
	// A call of a modern client that nobody knows has a process for itself.
	a := p.Client(testmcp.Modern).CallTool("up__env", "")
	pid := a.Text()
	if pid == "" {
		t.Fatalf("the call gives %.300s", a.Raw)
	}
	closed := func(r testmcp.Record) bool { return r.Kind == testmcp.Exit && strconv.Itoa(r.PID) == pid }
	if n := rec.Count(closed); n != 0 {
		t.Error("the server had ended before the answer came")
	}
	rec.Wait(t, closed)
}
