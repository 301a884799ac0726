package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func bySession(cfg *config.Server, _ *Options) { cfg.Sharing = config.SharingSession }

func TestCallsGoToTheSlotWithTheFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := startUpstream(t, newRig(t), &program{t: t}, func(cfg *config.Server, _ *Options) { cfg.Instances = 3 })
		defer u.Stop()
		synctest.Wait()
		var leases []*Lease
		for range 6 {
			l, err := u.Acquire(t.Context(), Unit{Key: "whoever"})
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		perSlot := map[string]int{}
		for _, l := range leases {
			perSlot[callOn(t, u, l)]++
		}
		if perSlot["1"] != 2 || perSlot["2"] != 2 || perSlot["3"] != 2 {
			t.Errorf("calls by slot: %v", perSlot)
		}
		if st := u.Status(); st.Slots[StateBusy] != 3 {
			t.Errorf("slots: %v", st.Slots)
		}
		for _, l := range leases {
			l.Release()
		}
		if st := u.Status(); st.Slots[StateReady] != 3 {
			t.Errorf("slots: %v", st.Slots)
		}
	})
}

func TestAUnitHasAConnectionOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, bySession)
		defer u.Stop()
		synctest.Wait()
		got := map[string]string{}
		for _, key := range []string{"a", "b", "a", "b"} {
			i, err := instance(t, u, Unit{Key: key, Ends: true})
			if err != nil {
				t.Fatal(err)
			}
			if old := got[key]; old != "" && old != i {
				t.Errorf("unit %s is served by %s, before by %s", key, i, old)
			}
			got[key] = i
		}
		if got["a"] == got["b"] || got["a"] == "1" || got["b"] == "1" {
			t.Errorf("units share a connection: %v", got)
		}
		u.EndUnit("a")
		u.EndUnit("nobody")
		synctest.Wait()
		if _, live := p.starts(); live != 2 {
			t.Errorf("%d instances run, want that for all and that of b", live)
		}
		if i, err := instance(t, u, Unit{Key: "a", Ends: true}); err != nil || i == got["a"] {
			t.Errorf("after its end the unit is served by %s, %v", i, err)
		}
	})
}

func TestUnitsThatAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, bySession)
		set := NewSet([]*Upstream{u}, nil, nil)
		set.stop = func() {}
		defer u.Stop()
		for _, unit := range []Unit{{Key: "session", Ends: true}, {Key: "principal"}, {Key: "busy"}} {
			l, err := u.Acquire(t.Context(), unit)
			if err != nil {
				t.Fatal(err)
			}
			if unit.Key != "busy" {
				l.Release()
			}
		}
		for _, c := range []struct {
			after time.Duration
			live  int
		}{{idleUnit, 4}, {idleUnit + time.Second, 3}, {100 * idleUnit, 3}} {
			u.EndIdleUnits(time.Now().Add(c.after))
			synctest.Wait()
			if _, live := p.starts(); live != c.live {
				t.Errorf("after %s %d instances run, want %d", c.after, live, c.live)
			}
		}
		set.EndUnit("session")
		synctest.Wait()
		if _, live := p.starts(); live != 2 {
			t.Errorf("after the end of the session %d instances run", live)
		}
	})
}

// A caller that cannot be told apart gets a connection for one call, which ends with it.
func TestAConnectionForOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, bySession)
		defer u.Stop()
		synctest.Wait()
		a, err := instance(t, u, Unit{})
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := instance(t, u, Unit{}); a == b || a == "1" {
			t.Errorf("two calls were served by %s and %s", a, b)
		}
		synctest.Wait()
		if _, live := p.starts(); live != 1 {
			t.Errorf("%d instances run", live)
		}
	})
}

// The connection for one call whose caller gives up before it is there has no use any more.
func TestGivingUpOnAConnectionForOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		p.on = func(n int, f *wire.Frame, w io.WriteCloser) bool {
			return n > 1 && f.Method == "initialize" // all but the first never get ready
		}
		u := startUpstream(t, newRig(t), p, bySession)
		defer u.Stop()
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBudget)
		defer cancel()
		if _, err := u.Acquire(ctx, Unit{}); !errors.Is(err, errBudget) {
			t.Errorf("acquire gives %v", err)
		}
		synctest.Wait()
		if n, live := p.starts(); n != 2 || live != 1 {
			t.Errorf("%d instances were started and %d run", n, live)
		}
	})
}

// A unit whose connection fails is told so; its call does not start the server again and again.
func TestAUnitsConnectionThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t, start: func(n int) bool { return n == 1 }}
		u := startUpstream(t, newRig(t), p, bySession)
		defer u.Stop()
		synctest.Wait()
		for i := range 3 {
			_, err := instance(t, u, Unit{Key: "a", Ends: true})
			wantReason(t, err, ReasonUnavailable)
			synctest.Wait()
			if n, _ := p.starts(); n != 2+i {
				t.Errorf("after %d calls the server was started %d times", i+1, n)
			}
		}
	})
}

func TestConnectionsOfUnitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		u := startUpstream(t, r, &program{t: t}, bySession)
		defer u.Stop()
		for i := range maxKeyedSlots {
			if _, err := instance(t, u, Unit{Key: fmt.Sprint(i), Ends: true}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := instance(t, u, Unit{Key: "one too many", Ends: true})
		wantReason(t, err, ReasonOverloaded)
		if r.limit(count.LimitSlots) != 1 {
			t.Error("the bound is not counted")
		}
		if _, err := instance(t, u, Unit{Key: "0", Ends: true}); err != nil {
			t.Errorf("a unit that has a connection: %v", err)
		}
		u.EndUnit("1")
		synctest.Wait()
		if _, err := instance(t, u, Unit{Key: "another", Ends: true}); err != nil {
			t.Errorf("after the end of one: %v", err)
		}
	})
}

// An upstream in trouble is answered for at once; one that is only just starting is waited for.
func TestWaitingForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := make(chan struct{})
		p := &program{t: t}
		p.start = func(n int) bool {
			switch n {
			case 1: // slow to start
				pass(5 * time.Second)
				return true
			case 2: // gone at once
				return false
			}
			<-ready
			return true
		}
		u := startUpstream(t, newRig(t), p, func(cfg *config.Server, _ *Options) { cfg.Protocol = config.ProtocolLegacy })
		defer u.Stop()
		began := time.Now()
		l, err := u.Acquire(t.Context(), Unit{})
		if took := time.Since(began); err != nil || took != 5*time.Second {
			t.Fatalf("at the start: %v after %s", err, took)
		}
		l.Release()

		_ = l.conn.(*inprocess).ours.Close() // it dies young, and its successor at once
		pass(1500 * time.Millisecond)
		began = time.Now()
		_, err = u.Acquire(t.Context(), Unit{})
		e := wantReason(t, err, ReasonUnavailable)
		if time.Since(began) != 0 || e.RetryAfter <= 0 || e.RetryAfter > 3*time.Second {
			t.Errorf("in backoff: after %s, retry after %s", time.Since(began), e.RetryAfter)
		}

		pass(3 * time.Second) // the next try is under way and takes long
		began = time.Now()
		_, err = u.Acquire(t.Context(), Unit{})
		wantReason(t, err, ReasonUnavailable)
		if took := time.Since(began); took != patienceInTrouble {
			t.Errorf("while the next try is under way: after %s", took)
		}
		began = time.Now()
		time.AfterFunc(time.Second, func() { close(ready) })
		l, err = u.Acquire(t.Context(), Unit{})
		if took := time.Since(began); err != nil || took != time.Second {
			t.Fatalf("the next try succeeds: %v after %s", err, took)
		}
		l.Release()
	})
}

func TestAcquireEndsWithItsContextAndWithTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := startUpstream(t, newRig(t), &program{t: t, on: func(int, *wire.Frame, io.WriteCloser) bool { return true }}, nil)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBudget)
		defer cancel()
		for name, acquire := range map[string]func() (*Lease, error){
			"call":   func() (*Lease, error) { return u.Acquire(ctx, Unit{}) },
			"shared": func() (*Lease, error) { return u.AcquireShared(ctx) },
		} {
			if _, err := acquire(); !errors.Is(err, errBudget) {
				t.Errorf("%s: acquire gives %v", name, err)
			}
		}
		got := make(chan error)
		go func() { _, err := u.Acquire(context.Background(), Unit{}); got <- err }()
		synctest.Wait()
		u.Stop()
		if err := <-got; !errors.Is(err, ErrClosed) {
			t.Errorf("at the stop: acquire gives %v", err)
		}
	})
}

// A dead connection fails its calls as uncertain and is replaced.
func TestALostConnectionFailsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := &program{t: t}
		p.on = func(n int, f *wire.Frame, w io.WriteCloser) bool {
			if n == 1 && f.Method == "tools/call" {
				_ = w.Close()
				return true
			}
			return false
		}
		u := startUpstream(t, r, p, nil)
		defer u.Stop()
		l, err := u.Acquire(t.Context(), Unit{})
		if err != nil {
			t.Fatal(err)
		}
		id := u.NextID()
		x, _ := l.Start(t.Context(), &Outgoing{ID: id, Method: "tools/call", Frame: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id)})
		_, err = x.Next(t.Context())
		if e := wantReason(t, err, ReasonUncertain); !strings.Contains(e.Error(), "has ended") {
			t.Errorf("the error is %v", e)
		}
		x.Close(false)
		l.Release()
		pass(2 * time.Second)
		if i, err := instance(t, u, Unit{}); i != "2" || err != nil {
			t.Errorf("the next call: %s, %v", i, err)
		}
		r.wantBudgetWhole()
	})
}

// Cancels and refusals are sent off the caller's path, and Stop waits for them.
func TestCancelAndRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var got []string
		p := &program{t: t}
		p.on = func(_ int, f *wire.Frame, w io.WriteCloser) bool {
			switch {
			case f.Method == "tools/call":
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`+"\n")
				return true
			case f.Kind == wire.KindResponse || f.Method == "notifications/cancelled":
				got = append(got, string(f.Raw))
			}
			return false
		}
		u := startUpstream(t, r, p, nil)
		l, err := u.Acquire(t.Context(), Unit{})
		if err != nil {
			t.Fatal(err)
		}
		id := u.NextID()
		x, _ := l.Start(t.Context(), &Outgoing{ID: id, Method: "tools/call", Frame: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id)})
		f, err := x.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l.Refuse(x, f)
		synctest.Wait()
		l.Cancel(id, "enough")
		synctest.Wait()
		x.Close(true)
		l.Release()
		u.Stop()
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}} {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, id)
		if strings.Join(got, " ") != want {
			t.Errorf("the server was told\n%s\nwant\n%s", strings.Join(got, " "), want)
		}
		if r.dropped(count.DropRequest) != 1 {
			t.Error("the refusal is not counted")
		}
	})
}
