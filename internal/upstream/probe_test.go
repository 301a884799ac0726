package upstream

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// asked counts how often a program got this method.
func (p *program) asked(method string) (n int) {
	for _, m := range p.received() {
		if m == method {
			n++
		}
	}
	return n
}

func TestAnIdleConnectionIsProbedByTheMeansOfItsEra(t *testing.T) {
	for era, c := range map[wire.Era]struct {
		method string
		before int // in the handshake
	}{wire.Legacy: {"ping", 0}, wire.Modern: {"server/discover", 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := &program{t: t, era: era}
			u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) { cfg.ProbeInterval = time.Minute })
			defer u.Stop()
			pass(10*time.Minute + 30*time.Second)
			synctest.Wait()
			// An error is an answer too: the program knows no ping.
			if n := p.asked(c.method) - c.before; n < 9 || n > 11 {
				t.Errorf("%s: %d probes in ten minutes", era, n)
			}
			if started, _ := p.starts(); started != 1 || u.Status().State != HealthReady {
				t.Errorf("%s: %d starts, the state is %s", era, started, u.Status().State)
			}
		})
	}
}

func TestProbesDoNotKeepAServerFromResting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) {
			cfg.ProbeInterval, cfg.IdleStop = 10*time.Second, 5*time.Minute
		})
		defer u.Stop()
		pass(5*time.Minute + time.Second)
		synctest.Wait()
		if u.Status().State != HealthIdle || p.asked("ping") < 20 {
			t.Errorf("after %d probes the state is %s", p.asked("ping"), u.Status().State)
		}
		before := p.asked("ping")
		pass(time.Hour)
		if p.asked("ping") != before {
			t.Error("a server that rests is probed")
		}
	})
}

// mute is a program that answers pings until it is told not to.
func mute(t *testing.T, deaf *atomic.Bool) *program {
	p := &program{t: t}
	p.on = func(n int, f *wire.Frame, _ io.WriteCloser) bool { return n == 1 && f.Method == "ping" && deaf.Load() }
	return p
}

func TestAServerThatAnswersNoProbesIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaf atomic.Bool
		p := mute(t, &deaf)
		r := newRig(t)
		u := startUpstream(t, r, p, func(cfg *config.Server, _ *Options) { cfg.ProbeInterval = time.Minute })
		defer u.Stop()
		pass(5 * time.Minute)
		synctest.Wait()
		deaf.Store(true)
		degraded := false
		for range 200 {
			pass(time.Second)
			synctest.Wait()
			if started, _ := p.starts(); started == 1 && u.Status().State == HealthDegraded {
				degraded = u.Status().Up
			}
		}
		if !degraded {
			t.Error("the first misses do not show")
		}
		st := u.Status()
		if started, live := p.starts(); started != 2 || live != 1 || st.State != HealthReady {
			t.Errorf("%d starts, %d live, the state is %s", started, live, st.State)
		}
		if st.Failure == nil || !strings.Contains(st.Failure.Message, "3 probes in a row") {
			t.Errorf("the failure is %+v", st.Failure)
		}
		if n := metric(t, r.reg, "mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", restartTransport); n != 1 {
			t.Errorf("%v restarts are counted", n)
		}
	})
}

// A server that does one thing at a time answers no probe beside a call. That is not death.
func TestABusyServerIsNotProbedAndNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaf atomic.Bool
		p := mute(t, &deaf)
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) { cfg.ProbeInterval = 30 * time.Second })
		defer u.Stop()
		<-u.First()
		deaf.Store(true)
		l := lease(t, u)
		pass(20 * time.Minute)
		if n := p.asked("ping"); n != 0 {
			t.Errorf("%d probes beside a call", n)
		}
		l.Release()
		// Calls that begin while a probe waits are why it may not be answered.
		for range 20 {
			pass(5 * time.Second)
			lease(t, u).Release()
		}
		synctest.Wait()
		if started, _ := p.starts(); started != 1 || u.Status().State != HealthReady || p.asked("ping") == 0 {
			t.Errorf("%d starts, %d probes, the state is %s", started, p.asked("ping"), u.Status().State)
		}
	})
}

// What a client has given up may still be worked on; the server is only taken for dead when no call could last so long.
func TestACancelledCallDoesNotCostTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deaf atomic.Bool
		p := mute(t, &deaf)
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) {
			cfg.ProbeInterval, cfg.MaxCallTime = 30*time.Second, 10*time.Minute
		})
		defer u.Stop()
		<-u.First()
		l := lease(t, u)
		deaf.Store(true)
		l.Cancel(u.NextID(), "the client is not interested any more")
		l.Release()
		pass(9 * time.Minute)
		synctest.Wait()
		if started, _ := p.starts(); started != 1 || u.Status().State != HealthReady {
			t.Errorf("while the call may run: %d starts, the state is %s", started, u.Status().State)
		}
		pass(5 * time.Minute)
		synctest.Wait()
		if started, _ := p.starts(); started != 2 {
			t.Errorf("when no call can run any more: %d starts", started)
		}
	})
}

func TestAnHTTPServerThatIsGoneIsFoundWithoutACall(t *testing.T) {
	t.Parallel()
	var answer atomic.Int32 // a status to answer probes with
	var pings atomic.Int32
	h := testmcp.ServeHTTP(t, &testmcp.Server{Era: testmcp.Legacy}, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !strings.Contains(string(body), `"ping"`) {
			return false
		}
		pings.Add(1)
		if code := answer.Load(); code != 0 {
			w.WriteHeader(int(code))
			return true
		}
		return false
	}})
	cfg := serverConfig(config.TransportHTTP)
	cfg.URL = config.Secret(h.URL)
	cfg.ProbeInterval = 20 * time.Millisecond
	u := startReal(t, newRig(t), cfg)
	enough := func() bool { return pings.Load() >= 3*probeMisses }
	testmcp.Eventually(t, "probes", enough)
	answer.Store(http.StatusInternalServerError)
	pings.Store(0)
	testmcp.Eventually(t, "probes that are answered with an error", enough)
	if st := u.Status(); st.State != HealthReady {
		t.Errorf("errors as answers make it %s: %+v", st.State, st.Failure)
	}
	h.Stop()
	testmcp.Eventually(t, "failure", func() bool { return !u.Status().Up })
}
