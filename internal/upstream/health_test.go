package upstream

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestHealthFollowsFromFacts(t *testing.T) {
	seen := map[Health]bool{}
	for _, c := range []struct {
		f    facts
		want Health
	}{
		{facts{}, HealthConnecting},
		{facts{waking: true, failures: crashLoop}, HealthConnecting},
		{facts{connected: 1}, HealthReady},
		{facts{connected: 1, failures: crashLoop}, HealthReady},
		{facts{connected: 2, broken: 1}, HealthDegraded},
		{facts{connected: 1, missed: 1}, HealthDegraded},
		{facts{connected: 1, listsBroken: true}, HealthDegraded},
		{facts{idle: true, listsBroken: true}, HealthIdle},
		{facts{idle: true, broken: 1}, HealthIdle},
		{facts{broken: 1, failures: 1}, HealthFailed},
		{facts{broken: 1, failures: crashLoop}, HealthCrashLoop},
		{facts{failures: crashLoop}, HealthCrashLoop}, // the next attempt is under way
		{facts{mistaken: true}, HealthFailed},
		{facts{retiring: true, connected: 1}, HealthDraining},
		{facts{stopped: true, retiring: true, connected: 1}, HealthStopped},
	} {
		seen[c.want] = true
		if got := c.f.health(); got != c.want {
			t.Errorf("%+v is %s, want %s", c.f, got, c.want)
		}
	}
	for _, h := range Healths {
		if !seen[h] {
			t.Errorf("no facts lead to %s", h)
		}
	}
}

// The time of a failure is that of the failure, whenever somebody asks for it.
func TestAListFailureKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := startUpstream(t, newRig(t), &program{t: t}, nil)
		defer u.Stop()
		<-u.First()
		u.Listed(errors.New("tools/list: nonsense"))
		at := time.Now()
		pass(time.Minute)
		st := u.Status()
		if st.State != HealthDegraded || !st.Up || st.Failure == nil || st.Failure.Stage != "list" || !st.Failure.At.Equal(at) {
			t.Errorf("the status is %+v, %+v", st, st.Failure)
		}
		u.Listed(nil)
		if st := u.Status(); st.State != HealthReady || st.Failure != nil {
			t.Errorf("afterwards it is %+v, %+v", st, st.Failure)
		}
	})
}

// setOf makes a set of programs in this process, which is not started.
func setOf(r *rig, p *program, ids ...string) (*Set, []*Upstream) {
	m := NewMetrics(r.reg)
	var all []*Upstream
	for _, id := range ids {
		cfg := serverConfig(config.TransportInProcess)
		cfg.ID = id
		all = append(all, New(cfg, Options{Log: zap.NewNop(), Count: r.count, Metrics: m, Budget: r.budget, Limits: config.Limits{MaxFrameBytes: 1 << 20}, Serve: p.serve}))
	}
	return NewSet(all, m, r.reg), all
}

func idsOf(all []*Upstream) (ids []string) {
	for _, u := range all {
		ids = append(ids, u.ID)
	}
	return ids
}

func TestReplaceTellsWhatIsNewAndWhatIsGone(t *testing.T) {
	r := newRig(t)
	s, all := setOf(r, &program{t: t}, "a", "b", "c")
	defer s.Stop()
	other := New(all[1].cfg, all[1].opts)
	fresh := serverConfig(config.TransportInProcess)
	fresh.ID = "d"
	added, removed := s.Replace([]*Upstream{New(fresh, all[0].opts), all[0], other})
	if got := idsOf(added); !slices.Equal(got, []string{"d", "b"}) || added[1] != other {
		t.Errorf("added are %q", got)
	}
	if got := idsOf(removed); !slices.Equal(got, []string{"b", "c"}) || removed[0] != all[1] {
		t.Errorf("removed are %q", got)
	}
	if got := idsOf(s.All()); !slices.Equal(got, []string{"d", "a", "b"}) || s.Get("b") != other || s.Get("c") != nil {
		t.Errorf("the set holds %q", got)
	}
	reloads := func(id string) float64 {
		return metric(t, r.reg, "mcp_proxy_upstream_restarts_total", "upstream", id, "reason", restartReload)
	}
	if reloads("b") != 1 || reloads("a") != 0 || reloads("d") != 0 {
		t.Errorf("reloads are counted %v, %v, %v times", reloads("b"), reloads("a"), reloads("d"))
	}
	for _, u := range removed {
		u.Stop()
	}
}

func TestAnUpstreamRetiresWhenItsCallsHaveEnded(t *testing.T) {
	for name, c := range map[string]struct{ holds, grace, want time.Duration }{
		"unused":              {0, time.Minute, settleTime},
		"a call ends":         {5 * time.Second, time.Minute, 5 * time.Second},
		"a call does not end": {time.Hour, 10 * time.Second, 10 * time.Second},
		"no grace":            {time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				p := &program{t: t}
				s, all := setOf(r, p, "a", "b")
				var gone []string
				s.OnGone(func(id string) { gone = append(gone, id) })
				s.Start()
				synctest.Wait()
				if c.holds > 0 {
					l := lease(t, all[0])
					time.AfterFunc(c.holds, l.Release)
				}
				_, removed := s.Replace(all[1:])
				began := time.Now()
				s.Retire(removed, c.grace)
				synctest.Wait()
				if c.want > 0 {
					if shown := idsOf(s.Shown()); !slices.Equal(shown, []string{"b", "a"}) || all[0].Status().State != HealthDraining {
						t.Errorf("shown are %q, and the state is %s", shown, all[0].Status().State)
					}
					if v := metric(t, r.reg, "mcp_proxy_upstream_state", "upstream", "a", "state", "draining"); v != 1 {
						t.Errorf("the metric of draining is %v", v)
					}
				}
				<-all[0].ctx.Done()
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				synctest.Wait()
				if st := all[0].Status().State; st != HealthStopped || !slices.Equal(gone, []string{"a"}) || len(s.Shown()) != 1 {
					t.Errorf("it is %s, gone are %q", st, gone)
				}
				if st := all[1].Status().State; st != HealthReady {
					t.Errorf("the one that stays is %s", st)
				}
				s.Stop()
			})
		})
	}
}

func TestOneBrokenInstanceDegrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, start: func(n int) bool { return n != 2 }}
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) {
			cfg.Instances = 2
			cfg.Restart.InitialDelay = time.Minute
		})
		defer u.Stop()
		synctest.Wait()
		st := u.Status()
		if st.State != HealthDegraded || !st.Up || st.NextRetry.IsZero() || st.Slots[StateReady] != 1 || st.Slots[StateFailed] != 1 {
			t.Errorf("the status is %+v, %+v", st, st.Failure)
		}
		pass(2 * time.Minute)
		if st := u.Status(); st.State != HealthReady {
			t.Errorf("later it is %+v", st)
		}
	})
}
