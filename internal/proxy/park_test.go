package proxy

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// asker is a legacy server that asks in each call of its tool. The test answers the calls.
func asker(id string) *server {
	s := (&server{id: id, era: wire.Legacy}).tools("ask")
	s.on = func(f *wire.Frame, w io.Writer) (string, bool) {
		if f.Method != "tools/call" {
			return "", false
		}
		id := string(f.ID.Of(f.Raw))
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":{"message":"?"}}`+"\n", id)
		return "", true
	}
	return s
}

// answer ends the call of the server that has this id.
func (s *server) answerCall(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}`+"\n", id)
}

// lastCall is the id of the newest call that the server has seen.
func (s *server) lastCall(t *testing.T) string {
	t.Helper()
	calls := s.received("tools/call")
	f, err := wire.Parse([]byte(calls[len(calls)-1]), wire.Upstream, wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return string(f.ID.Of(f.Raw))
}

const personTime = time.Minute

func withPerson(c *config.Server) {
	c.Elicitation = config.Elicitation{Mode: config.ElicitationRelay, Timeout: personTime}
}

func askable() *Caller {
	c := modernCaller()
	c.Caps = CapElicitForm
	return c
}

// parkOne begins a call that is parked, and gives its state.
func (st *stage) parkOne(c *Caller) string {
	st.t.Helper()
	return st.stateIn(st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__ask","arguments":{}}}`))
}

func (st *stage) stateIn(answer string) string {
	st.t.Helper()
	_, rest, ok := strings.Cut(answer, `"requestState":"`)
	if !ok {
		st.t.Fatalf("no state in %s", answer)
	}
	state, _, _ := strings.Cut(rest, `"`)
	return state
}

func comeBack(state, answers string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s__ask","arguments":{},"requestState":"` + state + `","inputResponses":` + answers + `}}`
}

const accepted = `{"q1":{"action":"accept","content":{}}}`

// nothingLeft checks that all that parked calls held has been given back.
func (st *stage) nothingLeft() {
	st.t.Helper()
	k := st.p.parked
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.calls)+k.reserved+len(k.byPrincipal)+len(k.byUpstream) != 0 {
		st.t.Errorf("%d calls, %d reserved, %v, %v are left", len(k.calls), k.reserved, k.byPrincipal, k.byUpstream)
	}
	if n := st.ups.Get("s").Status().Slots[upstream.StateBusy]; n != 0 {
		st.t.Errorf("%d connections are still in use", n)
	}
}

func TestAParkedCallGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asker("s")
		st := newStage(t, Options{}, withPerson, s)
		defer st.stop()
		state := st.parkOne(askable())
		time.Sleep(personTime - time.Second)
		go func() {
			time.Sleep(time.Second)
			s.answerCall(s.lastCall(t))
		}()
		if got := st.text(askable(), comeBack(state, accepted)); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "done") {
			t.Errorf("it gave %s", got)
		}
		time.Sleep(time.Hour) // nothing of it comes back to life
		synctest.Wait()
		st.nothingLeft()
		if n := len(s.received("notifications/cancelled")); n != 0 {
			t.Errorf("the server got %d cancels", n)
		}
	})
}

// However a parked call ends, the server is told, all is given back, and the end is counted once.
func TestTheEndsOfAParkedCall(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Server)
		end    func(st *stage)
		cause  Cause
	}{
		"nobody comes back": {func(*config.Server) {}, func(*stage) { time.Sleep(personTime + time.Second) }, CauseClientGone},
		"the longest time":  {func(c *config.Server) { c.MaxCallTime = time.Second }, func(*stage) { time.Sleep(2 * time.Second) }, CauseMaxTime},
		"the program ends":  {func(*config.Server) {}, func(st *stage) { st.p.EndParked() }, CauseShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := asker("s")
				st := newStage(t, Options{}, func(cfg *config.Server) { withPerson(cfg); c.change(cfg) }, s)
				defer st.stop()
				state := st.parkOne(askable())
				c.end(st)
				synctest.Wait()
				st.nothingLeft()
				if n := len(s.received("notifications/cancelled")); n != 1 {
					t.Errorf("the server got %d cancels", n)
				}
				s.mu.Lock()
				last := strings.Join(s.seen, "\n")
				s.mu.Unlock()
				if !strings.Contains(last, `"result":{"action":"cancel"}`) {
					t.Errorf("the server was not told that its question is over:\n%s", last)
				}
				if n := metricOf(t, st.reg, "mcp_proxy_cancellations_total", "upstream", "s", "cause", string(c.cause)); n != 1 {
					t.Errorf("it was counted %v times", n)
				}
				if got := st.text(askable(), comeBack(state, accepted)); !strings.Contains(got, "-32602") {
					t.Errorf("whoever comes back gets %s", got)
				}
			})
		})
	}
}

// The client may come back in the very moment in which its time is over: one of the two wins, and only one.
func TestComingBackInTheLastMoment(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := asker("s")
			st := newStage(t, Options{}, withPerson, s)
			defer st.stop()
			state := st.parkOne(askable())
			time.Sleep(personTime) // in the same instant as the timer
			go func() {
				time.Sleep(time.Second)
				s.answerCall(s.lastCall(t))
			}()
			got := st.text(askable(), comeBack(state, accepted))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			st.nothingLeft()
			cancels := len(s.received("notifications/cancelled"))
			if done := strings.Contains(got, "done"); done == (cancels == 1) {
				t.Errorf("%d cancels, and the answer is %s", cancels, got)
			}
		})
	}
}

func TestParkedCallsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Server)
		want   int
	}{
		"per principal": {func(*config.Server) {}, maxParkedPerPrincipal},
		"one call at a time": {func(c *config.Server) {
			c.Sharing, c.Instances = config.SharingCall, 4
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := serverConfig("s")
			c.change(cfg)
			st := newStage(t, Options{}, c.change, asker("s"))
			defer st.stop()
			one := &call{p: st.p, up: "s", item: &Item{Upstream: st.ups.Get("s")}, req: &Request{Caller: askable()}}
			n := 0
			for st.p.parked.reserve(one) {
				n++
			}
			if n != c.want {
				t.Errorf("%d may be parked, want %d", n, c.want)
			}
			for range n {
				st.p.parked.free(one)
			}
			st.nothingLeft()
		})
	}
}

// One more than may be parked waits a little for another to be answered, no longer.
func TestACallWaitsForAPlaceToPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newParkings()
		u := upstream.New(&config.Server{ID: "s", Sharing: config.SharingCall, Instances: 2}, upstream.Options{Log: zap.NewNop()})
		one := &call{up: "s", item: &Item{Upstream: u}, req: &Request{Caller: askable()}}
		if !k.await(t.Context(), one) {
			t.Fatal("the first may not be parked")
		}
		began := time.Now()
		if k.await(t.Context(), one) || time.Since(began) != parkPatience {
			t.Errorf("without a place it waits %v", time.Since(began))
		}
		time.AfterFunc(time.Second, func() { k.free(one) })
		began = time.Now()
		if !k.await(t.Context(), one) || time.Since(began) != time.Second {
			t.Errorf("with one that is given back it waits %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if k.await(ctx, one) || time.Since(began) != time.Second {
			t.Errorf("a call that ends waits %v", time.Since(began))
		}
		k.free(one)
	})
}

// What was refused for want of a place is remarked on, with what helps.
func TestARefusalForWantOfAPlaceIsRemarkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asker("s")
		st := newStage(t, Options{}, func(c *config.Server) {
			withPerson(c)
			c.Sharing, c.Instances = config.SharingCall, 2
		}, s)
		defer st.stop()
		state := st.parkOne(askable())
		if got := st.p.Remarks("s"); got != nil {
			t.Errorf("before: %q", got)
		}
		over := make(chan string)
		go func() {
			over <- st.text(askable(), `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"s__ask","arguments":{}}}`)
		}()
		time.Sleep(parkPatience)
		synctest.Wait()
		s.answerCall(s.lastCall(t))
		if got := <-over; !strings.Contains(got, "done") {
			t.Errorf("the call over the bound gives %s", got)
		}
		want := `1 of its questions were refused, because as many calls as may already wait for their clients to come back; with "sharing": "call" that is one less than "instances"`
		if got := st.p.Remarks("s"); len(got) != 1 || got[0] != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		go func() { st.text(askable(), comeBack(state, accepted)) }()
	})
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, id := newParkings(), [16]byte{1, 2, 3}
		of := requestState{kind: stateParked, id: id, round: 7, theirs: []byte(`"x"`)}
		state := k.seal(of, time.Now().Add(time.Minute), []byte("mine"))
		if got, ok := k.open(state, []byte("mine")); !ok || !reflect.DeepEqual(got, of) {
			t.Errorf("it opens as %v", got)
		}
		for what, bad := range map[string]string{"empty": "", "prefix alone": statePrefix, "no prefix": strings.TrimPrefix(state, statePrefix),
			"cut": state[:len(state)-1], "longer": state + "A", "no base64": statePrefix + "!!!"} {
			if _, ok := k.open(bad, []byte("mine")); ok {
				t.Errorf("%s opens", what)
			}
		}
		if _, ok := k.open(state, []byte("yours")); ok {
			t.Error("it opens for somebody else")
		}
		if _, ok := newParkings().open(state, []byte("mine")); ok {
			t.Error("it opens after a restart")
		}
		time.Sleep(62 * time.Second)
		if _, ok := k.open(state, []byte("mine")); ok {
			t.Error("it opens when its time is over")
		}
	})
}

func FuzzState(f *testing.F) {
	k := newParkings()
	good := k.seal(requestState{kind: stateAgain}, time.Now().Add(time.Hour), nil)
	f.Add(good)
	f.Add(statePrefix)
	f.Fuzz(func(t *testing.T, state string) {
		if _, ok := k.open(state, nil); ok && state != good {
			t.Errorf("%q opens", state)
		}
	})
}

func TestTheSameRetryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, key := newParkings(), retryKey{round: 1}
		first, isFirst := k.join(key, [32]byte{1})
		again, second := k.join(key, [32]byte{1})
		if !isFirst || second || first != again {
			t.Error("the same retry does not join the first")
		}
		if other, _ := k.join(key, [32]byte{2}); other != nil {
			t.Error("other answers join it")
		}
		k.leave(key, first, []byte("answer"), -1)
		<-again.done
		if string(again.frame) != "answer" || again.code != -1 {
			t.Errorf("it gets %s, %d", again.frame, again.code)
		}
		time.Sleep(joinedFor - time.Second)
		if late, isFirst := k.join(key, [32]byte{1}); late == nil || isFirst {
			t.Error("the answer is not kept")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(k.joined) != 0 || k.kept != 0 {
			t.Errorf("%d answers, %d bytes are kept", len(k.joined), k.kept)
		}
		// What is too large in all is not kept, and neither is nothing.
		for i, size := range []int{maxJoinedBytes, 1, 0} {
			key := retryKey{round: uint32(i + 10)}
			j, _ := k.join(key, [32]byte{})
			k.leave(key, j, make([]byte, size), 0)
			k.mu.Lock()
			kept := k.joined[key] != nil
			k.mu.Unlock()
			if kept != (i == 0) {
				t.Errorf("%d bytes are kept: %v", size, kept)
			}
		}
		time.Sleep(joinedFor + time.Second)
	})
}

// Many clients park, come back, come back twice, give up and run out of time; in the end nothing is left.
func TestParkedCallsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asker("s")
		st := newStage(t, Options{}, func(c *config.Server) {
			withPerson(c)
			c.Sharing, c.Instances = config.SharingCall, 9
		}, s)
		defer st.stop()
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				state := st.parkOne(askable())
				switch i % 4 {
				case 0: // does not come back
				case 1: // answers nothing, then goes away
					st.text(askable(), comeBack(state, `{}`))
				default: // comes back, and closes the connection before the answer is there
					st.requestIn(ctx, cancel, askable(), nil, comeBack(state, accepted))
				}
			})
		}
		time.Sleep(personTime / 2)
		cancel(CauseClient)
		wg.Wait()
		time.Sleep(2 * personTime)
		synctest.Wait()
		st.nothingLeft()
		if n := metricOf(t, st.reg, "mcp_proxy_requests_in_flight", "upstream", "s"); n != 0 {
			t.Errorf("%v requests are in flight", n)
		}
		ids := s.received("notifications/cancelled")
		slices.Sort(ids)
		if len(ids) != 8 {
			t.Errorf("the server got %d cancels: %s", len(ids), ids)
		}
	})
}
