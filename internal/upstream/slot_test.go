package upstream

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestBackoffGrowsToItsBound(t *testing.T) {
	r := config.Restart{InitialDelay: time.Second, MaxDelay: 10 * time.Second, Multiplier: 2}
	for failures, want := range []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		for range 20 {
			if got := backoff(r, failures); got < want*9/10 || got > want*11/10 {
				t.Errorf("after %d failures: %s, want about %s", failures, got, want)
			}
		}
	}
	if got := backoff(r, 1_000_000); got > 11*time.Second {
		t.Errorf("after very many failures: %s", got)
	}
}

// A server that ends right after its handshake is started again ever more slowly; the delays begin anew only once it
// has been up for a while.
func TestBackoffBeginsAnewAfterSustainedUptimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var starts []time.Time
		p := &program{t: t, start: func(int) bool { starts = append(starts, time.Now()); return true }}
		p.on = func(n int, f *wire.Frame, w io.WriteCloser) bool {
			if f.Method != "notifications/initialized" {
				return false
			}
			uptime := 10 * time.Second // under healthy_after
			if n == 5 {
				uptime = time.Minute
			}
			time.AfterFunc(uptime, func() { _ = w.Close() })
			return true
		}
		u := startUpstream(t, r, p, nil)
		defer u.Stop()
		pass(10 * time.Minute)
		synctest.Wait()
		want := []time.Duration{11, 12, 14, 18, 60, 11, 12, 14} // seconds from one start to the next
		for i, w := range want {
			got := starts[i+1].Sub(starts[i])
			if i == 4 {
				w *= time.Second
				if got < w || got > w+time.Second {
					t.Errorf("after a healthy minute it takes %s to the next start", got)
				}
				continue
			}
			w *= time.Second
			if delay := w - 10*time.Second; got < w-delay/5 || got > w+delay/5 {
				t.Errorf("from start %d to the next: %s, want about %s", i+1, got, w)
			}
		}
		if n := metric(t, r.reg, "mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", restartTransport); int(n) != len(starts)-1 {
			t.Errorf("%v restarts are counted, want %d", n, len(starts)-1)
		}
	})
}

func TestConnectTimeoutBoundsTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, on: func(int, *wire.Frame, io.WriteCloser) bool { return true }} // says nothing
		began := time.Now()
		u := startUpstream(t, newRig(t), p, nil)
		defer u.Stop()
		<-u.First()
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("the first attempt took %s", took)
		}
		st := u.Status()
		if st.Up || st.Failure == nil || !strings.Contains(st.Failure.Message, "connect_timeout (15s)") || st.Failure.Stage != "handshake" {
			t.Errorf("the status is %+v, %+v", st, st.Failure)
		}
		if st.NextRetry.IsZero() || st.Failures != 1 || st.State != HealthFailed {
			t.Errorf("the status is %+v", st)
		}
		if got := strings.Join(p.received(), " "); got != "server/discover initialize" {
			t.Errorf("the server was sent %q", got)
		}
		if _, live := p.starts(); live != 0 {
			t.Errorf("%d instances run", live)
		}
	})
}

// A server that ends when it is asked for its era is started once more and asked to initialize; from then on it is
// never asked again.
func TestAServerThatEndsAtTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &remembered{}
		p := &program{t: t, on: func(_ int, f *wire.Frame, w io.WriteCloser) bool {
			if f.Method == "server/discover" {
				_ = w.Close()
				return true
			}
			return false
		}}
		u := startUpstream(t, newRig(t), p, func(_ *config.Server, o *Options) { o.Memory = mem })
		<-u.First()
		if st := u.Status(); !st.Up || st.Peer.Era != wire.Legacy {
			t.Errorf("the status is %+v, %+v", st, st.Failure)
		}
		u.Stop()
		if n, _ := p.starts(); n != 2 {
			t.Errorf("it was started %d times", n)
		}
		u = startUpstream(t, newRig(t), p, func(_ *config.Server, o *Options) { o.Memory = mem })
		<-u.First()
		u.Stop()
		if n, live := p.starts(); n != 3 || live != 0 {
			t.Errorf("it was started %d times, and %d run", n, live)
		}
	})
}

// An era that was remembered wrongly is looked for again, and the new one remembered.
func TestAnEraThatIsNoLongerTrue(t *testing.T) {
	for _, c := range []struct{ remembered, is wire.Era }{{wire.Legacy, wire.Modern}, {wire.Modern, wire.Legacy}} {
		synctest.Test(t, func(t *testing.T) {
			mem := &remembered{}
			cfg := serverConfig(config.TransportInProcess)
			def := New(cfg, Options{Log: newRig(t).env.log}).definition()
			mem.SetEra(def, c.remembered.String())
			p := &program{t: t, era: c.is}
			u := startUpstream(t, newRig(t), p, func(_ *config.Server, o *Options) { o.Memory = mem })
			<-u.First()
			if st := u.Status(); !st.Up || st.Peer.Era != c.is {
				t.Errorf("remembered as %s: %+v", c.remembered, st.Failure)
			}
			u.Stop()
			if got, _ := mem.Era(def); got != c.is.String() {
				t.Errorf("%s is remembered", got)
			}
		})
	}
}

func TestAConfiguredEraIsNotLookedFor(t *testing.T) {
	for _, c := range []struct {
		protocol config.Protocol
		is       wire.Era
		want     string
	}{
		{config.ProtocolLegacy, wire.Legacy, "initialize notifications/initialized"},
		{config.ProtocolModern, wire.Modern, "server/discover"},
		{config.ProtocolModern, wire.Legacy, "server/discover"},
		{config.ProtocolLegacy, wire.Modern, "initialize"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &program{t: t, era: c.is}
			u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) { cfg.Protocol = c.protocol })
			<-u.First()
			synctest.Wait()
			up := u.Status().Up
			got := strings.Join(p.received(), " ")
			u.Stop()
			if got != c.want || up != (c.is.String() == string(c.protocol)) {
				t.Errorf("%s with a %s server: up %v after %q", c.protocol, c.is, up, got)
			}
		})
	}
}

// The further instances of an upstream wait until the first has found the era.
func TestTheEraIsFoundOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) { cfg.Instances = 4 })
		defer u.Stop()
		synctest.Wait()
		probes := 0
		for _, m := range p.received() {
			if m == "server/discover" {
				probes++
			}
		}
		if st := u.Status(); probes != 1 || st.Slots[StateReady] != 4 {
			t.Errorf("%d probes and %v", probes, st.Slots)
		}
	})
}

func TestObserversHearOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		p := &program{t: t, on: func(n int, f *wire.Frame, w io.WriteCloser) bool {
			if f.Method == "notifications/initialized" && n == 1 {
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
				_ = w.Close()
			}
			return false
		}}
		u := startUpstream(t, newRig(t), p, func(_ *config.Server, o *Options) { o.Observer = h })
		defer u.Stop()
		pass(time.Minute)
		synctest.Wait()
		if changes, notes := h.all(); changes != 3 || strings.Join(notes, " ") != "notifications/tools/list_changed" {
			t.Errorf("heard %d changes and %q; want up, down, up and one announcement", changes, notes)
		}
	})
}

// Nothing of a server with a mistake in its configuration is started, and nobody waits for it.
func TestAServerWithAMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		p := &program{t: t}
		mistake := errors.New("command is missing")
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, o *Options) { cfg.Problem, o.Observer = mistake, h })
		<-u.First()
		_, err := u.Acquire(t.Context(), Unit{})
		wantReason(t, err, ReasonUnavailable)
		if st := u.Status(); !errors.Is(err, mistake) || st.Failure.Stage != "configuration" || st.State != HealthFailed {
			t.Errorf("acquire gives %v, the status is %+v", err, st)
		}
		if changes, _ := h.all(); changes != 1 {
			t.Errorf("heard %d changes", changes)
		}
		u.Stop()
		if n, _ := p.starts(); n != 0 {
			t.Errorf("it was started %d times", n)
		}
	})
}

func TestACrashLoopIsCalledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, start: func(int) bool { return false }}
		u := startUpstream(t, newRig(t), p, nil)
		defer u.Stop()
		pass(10 * time.Second)
		synctest.Wait()
		if st := u.Status(); st.State != "crash-looping" || st.Up || st.Failures < crashLoop {
			t.Errorf("the status is %+v", st)
		}
	})
}

// A modern server's announcements come through a subscription, which is renewed when it ends.
func TestNewsOfAModernServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		listens := 0
		p := &program{t: t, era: wire.Modern}
		p.on = func(_ int, f *wire.Frame, w io.WriteCloser) bool {
			switch f.Method {
			case "server/discover":
				reply(w, f, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{}}}`)
			case "subscriptions/listen":
				if listens++; listens > 2 {
					reply(w, f, noMethod)
					return true
				}
				id := string(f.ID.Of(f.Raw))
				if filter := f.Body.Get(f.Raw, "notifications").Of(f.Raw); string(filter) != `{"toolsListChanged":true}` {
					t.Errorf("it is asked for %s", filter)
				}
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":`+id+`}}}`+"\n")
				reply(w, f, `"result":{"resultType":"complete"}`)
			default:
				return false
			}
			return true
		}
		u := startUpstream(t, newRig(t), p, func(_ *config.Server, o *Options) { o.Observer = h })
		defer u.Stop()
		pass(5 * time.Minute)
		synctest.Wait()
		changes, notes := h.all()
		// It is looked at after it has connected, after each renewal, and when it refuses for good.
		if listens != 3 || len(notes) != 2 || changes != 4 {
			t.Errorf("%d subscriptions, %d announcements, %d changes; want 3, 2 and 4", listens, len(notes), changes)
		}
	})
}

// Whoever subscribes to a resource of a modern server may count on its updates once the server has taken the subscription.
func TestWaitingForASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, era: wire.Modern}
		p.on = func(_ int, f *wire.Frame, w io.WriteCloser) bool {
			switch f.Method {
			case "server/discover":
				reply(w, f, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}`)
			case "subscriptions/listen":
				ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` +
					string(f.ID.Of(f.Raw)) + `}}}` + "\n"
				go func() {
					pass(2 * time.Second)
					_, _ = io.WriteString(w, ack)
				}()
			default:
				return false
			}
			return true
		}
		u := startUpstream(t, newRig(t), p, nil)
		defer u.Stop()
		synctest.Wait()
		u.Watch(nil, []string{"note://a"})
		began := time.Now()
		u.AwaitWatch(t.Context(), nil)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it was waited for %v, want the 2s that the server takes", took)
		}
		u.AwaitWatch(t.Context(), nil)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("what is subscribed to is waited for again, until %v", took)
		}
		u.Watch(nil, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		u.Watch(nil, []string{"note://b"})
		u.AwaitWatch(ctx, nil)
		if took := time.Since(began); took >= 4*time.Second {
			t.Errorf("the end of the context is not the end of waiting, which took until %v", took)
		}
		u.AwaitWatch(t.Context(), nil)
	})
}
