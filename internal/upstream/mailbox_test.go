package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func progress(t testing.TB, n int, pad int) *wire.Frame {
	return parsed(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d,"message":"%s"}}`, n, strings.Repeat("x", pad)))
}

func logMessage(t testing.TB, pad int) *wire.Frame {
	return parsed(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"`+strings.Repeat("x", pad)+`"}}`)
}

func answer(t testing.TB, pad int) *wire.Frame {
	return parsed(t, `{"jsonrpc":"2.0","id":1,"result":{"pad":"`+strings.Repeat("x", pad)+`"}}`)
}

// takeAll empties a mailbox and gives the kinds of what was in it, notifications by method.
func takeAll(t *testing.T, m *mailbox) (out []string, frames []*wire.Frame) {
	t.Helper()
	for {
		f, err := m.poll()
		if f == nil {
			if err != nil {
				out = append(out, "error")
			}
			return out, frames
		}
		frames = append(frames, f)
		switch f.Kind {
		case wire.KindNotification:
			out = append(out, strings.TrimPrefix(f.Method, "notifications/"))
		case wire.KindRequest:
			out = append(out, f.Method)
		default:
			out = append(out, "answer")
		}
	}
}

func TestMailboxKeepsTheOrder(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r.budget, r.count)
	m.put(progress(t, 1, 0))
	m.put(logMessage(t, 0))
	m.put(parsed(t, `{"jsonrpc":"2.0","id":"s1","method":"roots/list"}`))
	m.put(progress(t, 2, 0))
	m.put(answer(t, 0))
	got, _ := takeAll(t, m)
	if want := "progress message roots/list progress answer"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
	r.wantBudgetWhole()
}

func TestMailboxOverItsBound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newMailbox(r.budget, r.count)
	const pad = 100 << 10
	m.put(progress(t, 0, pad))
	for range 30 {
		m.put(logMessage(t, pad))
	}
	for n := 1; n <= 5; n++ {
		m.put(progress(t, n, pad))
	}
	if m.put(parsed(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":"`+strings.Repeat("x", pad)+`"}}`)) {
		t.Error("a request was kept over the bound")
	}
	if !m.put(answer(t, 4*mailboxBytes)) {
		t.Error("the answer was not kept")
	}
	if m.bytes > 6*mailboxBytes {
		t.Errorf("%d bytes wait", m.bytes)
	}
	got, frames := takeAll(t, m)
	if got[len(got)-1] != "answer" {
		t.Errorf("the answer is not the last: %q", got)
	}
	last := frames[len(frames)-2]
	if last.Method != "notifications/progress" || !strings.Contains(string(last.Raw), `"progress":5`) {
		t.Errorf("the newest progress is not there, but %.120s", last.Raw)
	}
	n := 0
	for _, f := range frames {
		if f.Method == "notifications/progress" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d progress notifications wait, want them merged into one", n)
	}
	if got := r.dropped(count.DropLog); got != 21 {
		t.Errorf("%v log messages were dropped, want 21", got)
	}
	if got := r.dropped(count.DropProgress); got != 5 {
		t.Errorf("%v progress notifications were merged, want 5", got)
	}
	if r.limit(count.LimitMailbox) == 0 {
		t.Error("the bound is not counted")
	}
	r.wantBudgetWhole()
}

func TestMailboxBeyondTheBudgetFailsTheCall(t *testing.T) {
	r := newRig(t)
	small := NewBudget(1000)
	m := newMailbox(small, r.count)
	m.put(progress(t, 1, 0))
	m.put(answer(t, 2000))
	if f, err := m.poll(); f == nil || err != nil {
		t.Fatalf("what came before the failure is lost: %v", err)
	}
	_, err := m.poll()
	wantReason(t, err, ReasonOverloaded)
	if !errors.Is(err, errBudget) {
		t.Errorf("the error is %v", err)
	}
	if left := small.left.Load(); left != 1000 {
		t.Errorf("%d bytes are left of 1000", left)
	}
	if r.limit(count.LimitBuffered) != 1 {
		t.Error("the bound is not counted")
	}
}

func TestMailboxEndsAfterWhatWaits(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r.budget, r.count)
	m.put(progress(t, 1, 0))
	m.close(errSessionLost)
	m.close(errBudget) // the first reason holds
	if m.put(progress(t, 2, 0)) {
		t.Error("a closed mailbox takes a frame")
	}
	if f, err := m.take(t.Context()); f == nil || err != nil {
		t.Errorf("take = %v, %v", f, err)
	}
	if _, err := m.take(t.Context()); !errors.Is(err, errSessionLost) {
		t.Errorf("take gives %v", err)
	}
	r.wantBudgetWhole()
}

func TestMailboxTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := newMailbox(r.budget, r.count)
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error)
		take := func() {
			_, err := m.take(ctx)
			got <- err
		}
		go take()
		synctest.Wait()
		m.put(progress(t, 1, 0))
		if err := <-got; err != nil {
			t.Errorf("take gives %v", err)
		}
		go take()
		synctest.Wait()
		cancel(errBudget)
		if err := <-got; !errors.Is(err, errBudget) {
			t.Errorf("take gives %v, want the cause of its context", err)
		}
	})
}

func TestMailboxDropGivesTheBudgetBack(t *testing.T) {
	r := newRig(t)
	m := newMailbox(r.budget, r.count)
	m.put(progress(t, 1, 0))
	m.put(answer(t, 100))
	m.drop()
	r.wantBudgetWhole()
	if m.put(answer(t, 1)) {
		t.Error("a dropped mailbox takes a frame")
	}
	r.wantBudgetWhole()
}
