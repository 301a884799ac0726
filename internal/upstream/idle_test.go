package upstream

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func restsAfter(d time.Duration) func(*config.Server, *Options) {
	return func(c *config.Server, _ *Options) { c.IdleStop = d }
}

func wantLive(t *testing.T, p *program, started, live int) {
	t.Helper()
	synctest.Wait()
	if s, l := p.starts(); s != started || l != live {
		t.Errorf("%d instances were started and %d run, want %d and %d", s, l, started, live)
	}
}

func wantIdle(t *testing.T, u *Upstream, idle bool) {
	t.Helper()
	st := u.Status()
	if u.Idle() != idle || (st.State == HealthIdle) != idle {
		t.Errorf("Idle is %t and the state is %s, want idle: %t", u.Idle(), st.State, idle)
	}
	if !st.Up || st.Failure != nil || st.Failures != 0 {
		t.Errorf("up is %t, the failure %v, %d failures", st.Up, st.Failure, st.Failures)
	}
}

func TestAConnectionRestsAndComesBackForTheNextCall(t *testing.T) {
	for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
		t.Run(era.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				p := &program{t: t, era: era}
				u := startUpstream(t, r, p, restsAfter(time.Minute))
				defer u.Stop()
				<-u.First()
				pass(30 * time.Second)
				if got, err := instance(t, u, Unit{}); err != nil || !strings.Contains(got, "1") {
					t.Fatalf("the first call: %s, %v", got, err)
				}
				pass(59 * time.Second)
				wantLive(t, p, 1, 1)
				wantIdle(t, u, false)
				pass(2 * time.Second)
				wantLive(t, p, 1, 0)
				wantIdle(t, u, true)
				if u.Peer() == nil {
					t.Error("what the server is has been forgotten")
				}
				pass(time.Hour)
				wantLive(t, p, 1, 0)
				began := time.Now()
				if got, err := instance(t, u, Unit{}); err != nil || !strings.Contains(got, "2") {
					t.Fatalf("the call that wakes it: %s, %v", got, err)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("waking took %s", took)
				}
				wantLive(t, p, 2, 1)
				if n := metric(t, r.reg, "mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", restartIdle); n != 1 {
					t.Errorf("%v wakings are counted", n)
				}
			})
		})
	}
}

func TestManyCallsWakeOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := &program{t: t}
		u := startUpstream(t, r, p, restsAfter(time.Second))
		defer u.Stop()
		pass(time.Minute)
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if _, err := instance(t, u, Unit{}); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		wantLive(t, p, 2, 1)
	})
}

func TestWhatIsUsedDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		r := newRig(t)
		u := startUpstream(t, r, p, restsAfter(time.Minute))
		defer u.Stop()
		l, err := u.Acquire(t.Context(), Unit{})
		if err != nil {
			t.Fatal(err)
		}
		pass(10*time.Minute + 30*time.Second)
		wantLive(t, p, 1, 1)
		l.Release()
		pass(59 * time.Second)
		wantLive(t, p, 1, 1)
		u.Watch(nil, []string{"file:///a"})
		pass(10 * time.Minute)
		wantLive(t, p, 1, 1)
		u.Watch(nil, nil)
		pass(59 * time.Second)
		wantLive(t, p, 1, 1)
		pass(2 * time.Second)
		wantLive(t, p, 1, 0)
		u.Watch(nil, []string{"file:///a"})
		wantLive(t, p, 2, 1)
		wantIdle(t, u, false)
	})
}

func TestLookingAtListsIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, restsAfter(time.Minute))
		defer u.Stop()
		for range 3 {
			pass(19 * time.Second)
			l, err := u.AcquireShared(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
		}
		pass(4 * time.Second)
		wantLive(t, p, 1, 0)
	})
}

func TestTheConnectionOfASessionRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		r := newRig(t)
		u := startUpstream(t, r, p, func(c *config.Server, _ *Options) {
			c.IdleStop, c.Sharing = time.Minute, config.SharingSession
		})
		defer u.Stop()
		if _, err := instance(t, u, Unit{Key: "a", Ends: true}); err != nil {
			t.Fatal(err)
		}
		wantLive(t, p, 2, 2)
		pass(61 * time.Second)
		wantLive(t, p, 2, 0)
		wantIdle(t, u, true)
		if got, err := instance(t, u, Unit{Key: "a", Ends: true}); err != nil || !strings.Contains(got, "3") {
			t.Errorf("the call after it: %s, %v", got, err)
		}
		wantLive(t, p, 3, 1)
	})
}

func TestAnIdleUpstreamThatCannotBeWokenIsAnsweredFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, start: func(n int) bool { return n < 2 }}
		u := startUpstream(t, newRig(t), p, restsAfter(time.Minute))
		defer u.Stop()
		pass(2 * time.Minute)
		_, err := instance(t, u, Unit{})
		wantReason(t, err, ReasonUnavailable)
		if st := u.Status(); st.Up || st.Failures != 1 {
			t.Errorf("after the failure: %+v", st)
		}
	})
}

func TestAnIdleUpstreamCanBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, restsAfter(time.Second))
		pass(time.Minute)
		u.Stop()
		if _, err := instance(t, u, Unit{}); !errors.Is(err, ErrClosed) {
			t.Errorf("a call after the end: %v", err)
		}
	})
}
