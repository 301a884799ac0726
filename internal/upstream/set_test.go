package upstream

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestSeriesArePresentFromTheFirstScrape(t *testing.T) {
	r := newRig(t)
	m := NewMetrics(r.reg)
	u := New(serverConfig(config.TransportInProcess), Options{Log: zap.NewNop(), Count: r.count, Metrics: m, Budget: r.budget})
	NewSet([]*Upstream{u}, m, r.reg)
	for _, reason := range []string{"exit", "handshake", "transport", "session_lost", "reload", "idle"} {
		if v := metric(t, r.reg, "mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", reason); v != 0 {
			t.Errorf("%s is %v", reason, v)
		}
	}
	for state, want := range map[string]float64{"connecting": 1, "ready": 0, "busy": 0, "draining": 0, "failed": 0} {
		if v := metric(t, r.reg, "mcp_proxy_upstream_slots", "upstream", "up", "state", state); v != want {
			t.Errorf("%s is %v", state, v)
		}
	}
	if metric(t, r.reg, "mcp_proxy_upstream_up", "upstream", "up") != 0 {
		t.Error("it is up")
	}
	problems, err := testutil.GatherAndLint(r.reg)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	u.Stop()
}

func TestASetStartsAndStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := NewMetrics(r.reg)
		p := &program{t: t}
		var all []*Upstream
		for _, id := range []string{"b", "a"} {
			cfg := serverConfig(config.TransportInProcess)
			cfg.ID = id
			all = append(all, New(cfg, Options{Log: zap.NewNop(), Count: r.count, Metrics: m, Budget: r.budget, Limits: config.Limits{MaxFrameBytes: 1 << 20}, Serve: p.serve}))
		}
		s := NewSet(all, m, r.reg)
		s.Start()
		synctest.Wait()
		var ids []string
		for _, u := range s.All() {
			ids = append(ids, u.ID)
			if s.Get(u.ID) != u || !u.Status().Up || u.Peer() == nil {
				t.Errorf("%s: %+v", u.ID, u.Status())
			}
			if metric(t, r.reg, "mcp_proxy_upstream_up", "upstream", u.ID) != 1 {
				t.Errorf("the metric says that %s is down", u.ID)
			}
		}
		if strings.Join(ids, "") != "ba" || s.Get("c") != nil {
			t.Errorf("the set holds %q", ids)
		}
		s.Stop()
		if _, live := p.starts(); live != 0 {
			t.Errorf("%d servers run", live)
		}
	})
}
