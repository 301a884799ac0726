package life

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// brief ends as soon as it has been listed, unless it is told to stay. It listens to the test, not to its stdin.
var _ = testmcp.Register("brief", func(args []string) *testmcp.Server {
	s := testmcp.Basic("brief")
	s.Era = stdio.Era(args)
	s.Capabilities = `{"tools":{}}`
	s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
		c.Default()
		c.Process().Exit(0)
	}}
	return s
})

// waits gives the delays before the next attempts, in order, as the log tells them.
func waits(t *testing.T, p *testmcp.Proxy) []time.Duration {
	t.Helper()
	var out []time.Duration
	for _, r := range stdio.LogRecords(p, "upstream down") {
		d, err := time.ParseDuration(r.At("retry_in").Str())
		if err != nil {
			t.Fatalf("the delay of %s: %v", r, err)
		}
		out = append(out, d)
	}
	return out
}

func TestTheDelayGrowsAlthoughEveryHandshakeSucceeds(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
				"up": way.Entry(t, rec, "brief", nil, `"restart":{"initial_delay":"50ms","multiplier":2,"max_delay":"400ms"}`),
			}))
			begun := rec.WaitN(t, 6, testmcp.Is(testmcp.Start))
			for i, want := range []time.Duration{50, 100, 200, 400, 400} {
				least := want * time.Millisecond * 9 / 10
				if gap := begun[i+1].Time.Sub(begun[i].Time); gap < least {
					t.Errorf("start %d came %v after the one before, want at least %v", i+2, gap, least)
				}
				if d := waits(t, p)[i]; d < least || d > want*time.Millisecond*11/10 {
					t.Errorf("after failure %d the delay is %v, want about %v", i+1, d, want*time.Millisecond)
				}
			}
			st := stdio.UpstreamStatus(p, "up")
			if s := st.At("state").Str(); s != "crash-looping" && s != "ready" {
				t.Errorf("the status is %s", st)
			}
			if n := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", "exit"); n < 5 {
				t.Errorf("%v restarts are counted, want at least 5", n)
			}
		})
	}
}

func TestTheDelayIsShortAgainAfterSustainedUptime(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
		"up": rec.Entry("basic", nil, `"restart":{"initial_delay":"50ms","multiplier":3,"max_delay":"10s","healthy_after":"1s"}`),
	}))
	c := p.Client(testmcp.Legacy)
	crash := func(n int) {
		c.CallTool("up__crash", "")
		rec.WaitN(t, n, testmcp.Is(testmcp.Start))
		ready(t, p, "up")
	}
	for n := range 3 {
		crash(n + 2)
	}
	up := time.Now() // or a little earlier
	testmcp.Eventually(t, "sustained uptime", func() bool { return time.Since(up) > 1100*time.Millisecond })
	crash(5)
	crash(6)
	got := waits(t, p)
	grown := slices.IsSorted(got[:3]) && got[2] >= 400*time.Millisecond
	if !grown || got[3] > 60*time.Millisecond || got[4] > 60*time.Millisecond {
		t.Errorf("the delays are %v, want them to grow three times and then to begin anew", got)
	}
}

// spinner never answers, uses the processor and wants to be killed.
var _ = testmcp.Register("spinner", func([]string) *testmcp.Server {
	return &testmcp.Server{Start: func(p *testmcp.Process) {
		p.IgnoreSIGTERM()
		p.Burn()
	}}
})

func TestOfAServerThatNeverAnswersOneCopyRunsAtMost(t *testing.T) {
	rec, good := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"500ms"}`, map[string]string{
		"bad":  rec.Entry("spinner", nil, `"connect_timeout":"1s"`, `"restart":{"initial_delay":"1s"}`),
		"good": good.Entry("basic", nil),
	}))
	rec.Wait(t, testmcp.Is(testmcp.Start))
	p.WaitTool("good__echo")
	var took []time.Duration
	for range 15 {
		for _, era := range stdio.Eras {
			began := time.Now()
			c := p.Client(era)
			if names := c.ToolNames(); len(names) == 0 || strings.HasPrefix(names[0], "bad") {
				t.Fatalf("the tools are %v", names)
			}
			if a := c.CallTool("good__echo", `{"text":"x"}`); a.Text() != "x" {
				t.Fatalf("the good one gives %.300s", a.Raw)
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	if worst := took[len(took)-2]; worst > time.Second {
		t.Errorf("sessions with the good one take up to %v: %v", worst, took)
	}
	rec.WaitN(t, 2, testmcp.Is(testmcp.Start))
	live := 0
	for _, r := range rec.All() {
		switch r.Kind {
		case testmcp.Start:
			live++
		case testmcp.Exit:
			live--
		}
		if live > 1 {
			t.Errorf("%d copies run at the same time:\n%s", live, rec.Dump(20))
		}
	}
	down := waits(t, p)
	if len(down) == 0 || !strings.Contains(p.WaitLog("connect_timeout"), `"upstream":"bad"`) {
		t.Errorf("the log does not tell that the start took too long: %v", down)
	}
}

// spell is how long the stop of a stubborn process may take: the end of stdin, SIGTERM, SIGKILL.
const spell = 6 * time.Second

func TestAServerThatNeverAnswersIsKilledAtItsLimit(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
		"bad": rec.Entry("spinner", nil, `"connect_timeout":"1s"`, `"restart":{"initial_delay":"1m"}`),
	}), testmcp.WithoutReady())
	began := rec.Wait(t, testmcp.Is(testmcp.Start)).Time
	ended := rec.Wait(t, testmcp.Is(testmcp.Exit)).Time
	if took := ended.Sub(began); took > time.Second+spell {
		t.Errorf("it was ended after %v", took)
	}
	p.WaitReady()
	st := stdio.UpstreamStatus(p, "bad")
	if !strings.Contains(st.At("last_error", "message").Str(), "connect_timeout") || st.At("next_retry") == nil {
		t.Errorf("the status is %s", st)
	}
}
