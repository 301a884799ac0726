package upstream

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// newTestMux is a mux whose replies are kept.
func newTestMux(r *rig) (m *mux, replies *[]string) {
	replies = &[]string{}
	return newMux(r.env, func(f []byte) { *replies = append(*replies, string(f)) }), replies
}

func mustOpen(t *testing.T, m *mux, ids ...uint64) (boxes []*mailbox) {
	t.Helper()
	for _, id := range ids {
		b, err := m.open(&Outgoing{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		boxes = append(boxes, b)
	}
	return boxes
}

func TestMuxMatchesAnswers(t *testing.T) {
	for id, want := range map[string]bool{`17`: true, `"17"`: true, `17.0`: true, `18`: false, `-17`: false, `"x"`: false, `null`: false, `1e400`: false} {
		r := newRig(t)
		m, _ := newTestMux(r)
		box := mustOpen(t, m, 17)[0]
		member := `"result":{}`
		if id == "null" {
			member = `"error":{"code":-32700,"message":"?"}`
		}
		f, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":`+id+`,`+member+`}`), wire.Upstream, wire.Limits{})
		if err != nil {
			if want {
				t.Errorf("id %s: %v", id, err)
			}
			continue
		}
		m.dispatch(f)
		if got, _ := box.poll(); (got != nil) != want {
			t.Errorf("an answer with id %s is given to call 17: %v, want %v", id, got != nil, want)
		}
		if dropped := r.dropped(count.DropAnswer) == 1; dropped == want {
			t.Errorf("an answer with id %s is counted as dropped: %v", id, dropped)
		}
	}
}

func TestMuxGivesAnAnswerOnce(t *testing.T) {
	r := newRig(t)
	m, _ := newTestMux(r)
	box := mustOpen(t, m, 1)[0]
	for range 2 {
		m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":1,"result":{}}`))
	}
	if got, _ := takeAll(t, box); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if r.dropped(count.DropAnswer) != 1 {
		t.Error("the second answer is not counted as dropped")
	}
}

func TestMuxSendsNotificationsToTheirCall(t *testing.T) {
	for _, c := range []struct{ frame, to string }{
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, "call"},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}}`, "call"},
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}`, "everybody"}, // of a task, perhaps
		{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}`, "dropped"},
		{`{"jsonrpc":"2.0","method":"notifications/progress"}`, "dropped"},
		{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`, "call"},
		{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}}`, "dropped"},
		{`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, "everybody"},
		{`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`, "call"}, // the only one there is
	} {
		r := newRig(t)
		m, _ := newTestMux(r)
		box := mustOpen(t, m, 1)[0]
		m.dispatch(parsed(t, c.frame))
		got := "nowhere"
		switch f, _ := box.poll(); {
		case f != nil:
			got = "call"
		case len(r.noted()) > 0:
			got = "everybody"
		case r.dropped(count.DropProgress) == 1:
			got = "dropped"
		}
		if got != c.to {
			t.Errorf("%s went to %s, want %s", c.frame, got, c.to)
		}
	}
}

// A request of a server on a shared channel may only be brought to a client if no other call can be meant.
func TestMuxAttributesRequests(t *testing.T) {
	const ask = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`
	for _, c := range []struct {
		name            string
		open            []uint64
		cancel, forget  []uint64
		answered        []string
		wantFirstToHave bool
	}{
		{name: "no call"},
		{name: "one call", open: []uint64{1}, wantFirstToHave: true},
		{name: "two calls", open: []uint64{1, 2}},
		{name: "one call beside a cancelled one", open: []uint64{1, 2}, cancel: []uint64{2}},
		{name: "the cancelled one was answered", open: []uint64{1, 2}, cancel: []uint64{2}, answered: []string{"2"}, wantFirstToHave: true},
		{name: "the other one has ended", open: []uint64{1, 2}, forget: []uint64{2}, wantFirstToHave: true},
		{name: "only a cancelled one", open: []uint64{2}, cancel: []uint64{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			m, replies := newTestMux(r)
			boxes := mustOpen(t, m, c.open...)
			for _, id := range c.cancel {
				m.forget(id, true)
			}
			for _, id := range c.forget {
				m.forget(id, false)
			}
			for _, id := range c.answered {
				m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`))
			}
			m.dispatch(parsed(t, ask))
			if c.wantFirstToHave {
				if got, _ := takeAll(t, boxes[0]); !slices.Equal(got, []string{"elicitation/create"}) || len(*replies) > 0 {
					t.Errorf("the call got %q, the server %q", got, *replies)
				}
				return
			}
			want := `{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}`
			if len(*replies) != 1 || (*replies)[0] != want {
				t.Errorf("the server was told %q, want %s", *replies, want)
			}
			if r.dropped(count.DropRequest) != 1 {
				t.Error("the refusal is not counted")
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for method, want := range map[string]string{
		"ping":                   `{"jsonrpc":"2.0","id":7,"result":{}}`,
		"elicitation/create":     `{"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}`,
		"sampling/createMessage": `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,`,
		"roots/list":             `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,`,
	} {
		m, replies := newTestMux(newRig(t))
		m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":7,"method":"`+method+`"}`))
		if len(*replies) != 1 || !strings.HasPrefix((*replies)[0], want) {
			t.Errorf("%s is answered with %q, want %s", method, *replies, want)
		}
	}
}

// A ping is answered even while a call is under way that could be meant.
func TestPingNeverReachesACall(t *testing.T) {
	m, replies := newTestMux(newRig(t))
	box := mustOpen(t, m, 1)[0]
	m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`))
	if got, _ := takeAll(t, box); len(got) != 0 || len(*replies) != 1 {
		t.Errorf("the call got %q, the server %q", got, *replies)
	}
}

func TestMuxFailsAllCallsAndThoseToCome(t *testing.T) {
	r := newRig(t)
	m, _ := newTestMux(r)
	boxes := mustOpen(t, m, 1, 2)
	m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":1,"result":{}}`))
	m.fail(errSessionLost)
	m.fail(errBudget)
	if got, _ := takeAll(t, boxes[0]); !slices.Equal(got, []string{"answer"}) {
		t.Errorf("the answered call got %q", got)
	}
	if _, err := boxes[1].poll(); !errors.Is(err, errSessionLost) {
		t.Errorf("the other call got %v", err)
	}
	if _, err := m.open(&Outgoing{ID: 3}); !errors.Is(err, errSessionLost) {
		t.Errorf("a call to come got %v", err)
	}
}

func TestMuxFailOne(t *testing.T) {
	for _, c := range []struct {
		name       string
		open       []uint64
		id         uint64
		wantFailed bool
	}{
		{"by id", []uint64{1, 2}, 2, true},
		{"the only one", []uint64{2}, 0, true},
		{"nobody knows which", []uint64{1, 2}, 0, false},
		{"an unknown id", []uint64{1}, 7, false},
		{"no call", nil, 0, false},
	} {
		m, _ := newTestMux(newRig(t))
		boxes := mustOpen(t, m, c.open...)
		if got := m.failOne(c.id, errFrameTooLong); got != c.wantFailed {
			t.Errorf("%s: failOne = %v", c.name, got)
		}
		failed := 0
		for i, b := range boxes {
			if _, err := b.poll(); err != nil {
				failed++
				if c.open[i] != 2 {
					t.Errorf("%s: call %d failed", c.name, c.open[i])
				}
			}
		}
		if (failed == 1) != c.wantFailed {
			t.Errorf("%s: %d calls failed", c.name, failed)
		}
	}
}

func TestMuxRemembersABoundedNumberOfCancelledCalls(t *testing.T) {
	m, _ := newTestMux(newRig(t))
	for id := uint64(1); id <= maxCancelled+10; id++ {
		mustOpen(t, m, id)
		m.forget(id, true)
	}
	if len(m.cancelled) != maxCancelled {
		t.Errorf("%d cancelled calls are remembered, want %d", len(m.cancelled), maxCancelled)
	}
}

// A subscription that has ended, for another to take its place, stands as little in the way of the one call as one that
// goes on.
func TestMuxKnowsTheOneCallBesideWhatStands(t *testing.T) {
	m, _ := newTestMux(newRig(t))
	call := mustOpen(t, m, 1)[0]
	for id, method := range map[uint64]string{2: "subscriptions/listen", 3: "resources/subscribe"} {
		if _, err := m.open(&Outgoing{ID: id, Method: method}); err != nil {
			t.Fatal(err)
		}
	}
	if m.only() != call {
		t.Error("a subscription stands in the way")
	}
	m.forget(2, true)
	m.forget(3, true)
	if m.only() != call {
		t.Error("a subscription that has ended stands in the way")
	}
}

// An answer that came while the caller gave up must not hold the budget for ever.
func TestClosingACallGivesTheBudgetBack(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		r := newRig(t)
		m, _ := newTestMux(r)
		box := mustOpen(t, m, 1)[0]
		x := &boxExchange{m: m, id: 1, box: box}
		m.dispatch(progress(t, 1, 10))
		m.dispatch(parsed(t, `{"jsonrpc":"2.0","id":1,"result":{"text":"nobody reads this"}}`))
		x.Close(cancelled)
		x.Close(cancelled)
		r.wantBudgetWhole()
		if len(m.cancelled) != 0 {
			t.Error("an answered call counts as unanswered")
		}
	}
}
