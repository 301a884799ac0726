package upstream

import (
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// busy uses the processor for a while in each call, in the process itself and in one below it, and has one process that
// stays.
var _ = testmcp.Register("busy", func([]string) *testmcp.Server {
	return &testmcp.Server{
		Era:   testmcp.Legacy,
		Start: func(p *testmcp.Process) { p.Spawn(testmcp.Spawn{}) },
		Tools: callTool(func(c *testmcp.Call) {
			spin := `i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done`
			if err := exec.Command("sh", "-c", spin).Run(); err != nil {
				panic(err)
			}
			c.Result(`{"content":[],"structuredContent":{}}`)
		}),
	}
})

func TestTheUseOfChildrenIsMeasured(t *testing.T) {
	if !measures() {
		t.Skip("/proc is not of this namespace")
	}
	t.Parallel()
	r := newRig(t)
	m := NewMetrics(r.reg)
	cfg := childConfig("busy")
	cfg.Restart.InitialDelay = time.Millisecond
	u := New(cfg, Options{Log: zap.NewNop(), Count: r.count, Metrics: m, Budget: r.budget, Limits: config.Limits{MaxFrameBytes: 1 << 20}, Version: "1"})
	remote := serverConfig(config.TransportHTTP)
	remote.ID = "remote"
	s := NewSet([]*Upstream{u, New(remote, Options{Log: zap.NewNop(), Count: r.count, Metrics: m, Budget: r.budget})}, m, r.reg)
	u.Start()
	t.Cleanup(s.Stop)
	read := func(name string) float64 { return metric(t, r.reg, "mcp_proxy_child_"+name, "upstream", "up") }
	<-u.First()
	l := lease(t, u)
	if _, err := called(t, u, l); err != nil {
		t.Fatal(err)
	}
	if n := read("processes"); n != 2 {
		t.Errorf("%v processes, want the child and the one it has started", n)
	}
	if b := read("memory_bytes"); b < 1<<20 {
		t.Errorf("%v bytes of memory", b)
	}
	if n := read("open_fds"); n < 6 {
		t.Errorf("%v open descriptors of two processes", n)
	}
	used := read("cpu_seconds_total")
	if used <= 0 {
		t.Errorf("%v seconds of the processor", used)
	}
	l.conn.(*child).kill()
	<-l.conn.(*child).gone
	if n, later := read("processes"), read("cpu_seconds_total"); n > 2 || later < used {
		t.Errorf("after the end %v processes, and the processor time goes from %v to %v", n, used, later)
	}
	l.Release()
	testmcp.Eventually(t, "new child", func() bool { return u.Status().Up })
	if later := read("cpu_seconds_total"); later < used {
		t.Errorf("with the new child the processor time goes from %v to %v", used, later)
	}
	if problems, err := testutil.GatherAndLint(r.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := r.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "mcp_proxy_child_processes" && len(f.GetMetric()) != 1 {
			t.Errorf("%d series for one child; servers without processes have none", len(f.GetMetric()))
		}
	}
}

// What is seen of a child goes back when a process below it ends unnoticed; the sum does not, nor does anything count twice.
func TestTheSumOfProcessorTimeNeverGoesBack(t *testing.T) {
	g := newUsage()
	one, two := &child{env: &env{id: "up"}}, &child{env: &env{id: "up"}}
	want := func(d time.Duration) {
		t.Helper()
		if got := g.totals()["up"]; got != d {
			t.Errorf("the sum is %v, want %v", got, d)
		}
	}
	g.begin(one)
	g.see(one, 5*time.Second)
	g.see(one, 3*time.Second)
	want(5 * time.Second)
	g.begin(two)
	g.see(two, time.Second)
	g.end(one, nil)
	want(6 * time.Second)
	g.see(one, time.Minute) // a look that took long
	g.end(one, nil)
	want(6 * time.Second)
	g.forget("up")
	want(time.Second)
}

func TestWhoseAProcessIs(t *testing.T) {
	a, b := &child{}, &child{}
	roots := map[int]*child{10: a, 20: b}
	parents := map[int]int{1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 30: 1, 31: 30, 40: 41, 41: 40, 21: 12}
	for _, c := range []struct {
		p    process
		want *child
	}{
		{process{pid: 10, group: 10}, a},
		{process{pid: 12, group: 12}, a}, // in a group of its own, below it all the same
		{process{pid: 31, group: 20}, b}, // has lost its parent, in the group still
		{process{pid: 21, group: 20}, b},
		{process{pid: 31, group: 31}, nil},
		{process{pid: 40, group: 40}, nil}, // a ring
		{process{pid: 99, group: 99}, nil},
	} {
		if got := owner(c.p, parents, roots); got != c.want {
			t.Errorf("%+v is given to %p, want %p", c.p, got, c.want)
		}
	}
}
