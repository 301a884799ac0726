package upstream

import (
	"os/exec"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
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
	if !process.Measures() {
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
	l.conn.(*child).proc.Kill()
	<-l.conn.(*child).proc.Gone()
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
