package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

const sampleWindow = 30 * time.Second

func sampleSessions() config.Sessions {
	return config.Sessions{Mode: config.SessionsStateful, IdleTimeout: time.Hour, MaxAge: 24 * time.Hour, ResumeWindow: sampleWindow, ResumeBufferBytes: 64 << 10}
}

func sampleLimits() config.Limits {
	return config.Limits{MaxSessions: 100, MaxStreams: 100, MaxDepth: 64, MaxBufferedBytes: 1 << 20}
}

// record says n events of that size on a tape and gives their texts.
func record(t *tape, n, size int) (all []string) {
	for i := range n {
		text := fmt.Sprintf("%d %s", i+1, strings.Repeat("x", size))
		t.keep(t.next(), []byte(text), false)
		all = append(all, text)
	}
	return all
}

func texts(events []kept) (out []string) {
	for _, k := range events {
		out = append(out, string(k.frame))
	}
	return out
}

// checkBooks compares the sums that are kept with what there is.
func checkBooks(t *testing.T, h *shelf, all ...*tapes) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	whole := int64(0)
	for i, of := range all {
		sum := int64(0)
		for _, tp := range of.byNo {
			used := int64(tapeCost)
			for _, k := range tp.events {
				used += k.cost()
			}
			if used != tp.used {
				t.Errorf("session %d, stream %d: %d bytes are counted, there are %d", i, tp.no, tp.used, used)
			}
			sum += used
		}
		if sum != of.used {
			t.Errorf("session %d: %d bytes are counted, there are %d", i, of.used, sum)
		}
		whole += sum
	}
	if whole != h.used {
		t.Errorf("%d bytes are counted, there are %d", h.used, whole)
	}
}

func TestWhatIsSaidAgain(t *testing.T) {
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	defer h.stop()
	a, b := h.open(of, &exchange{}, nil), h.open(of, &exchange{}, nil)
	inA, inB := record(a, 5, 10), record(b, 3, 10)
	for seq := range uint64(6) {
		found, n, ok := h.find(of, a.id(seq))
		if !ok || found != a || n != seq {
			t.Fatalf("%q: %v, %d, %v", a.id(seq), found, n, ok)
		}
		if got := texts(found.after(n)); !slices.Equal(got, inA[seq:]) {
			t.Errorf("after %d: %q", seq, got)
		}
	}
	if got := texts(b.after(0)); !slices.Equal(got, inB) {
		t.Errorf("the other stream says %q", got)
	}
	checkBooks(t, h, of)
}

func TestEventIDsThatSayNothing(t *testing.T) {
	h, of, others := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}, &tapes{}
	defer h.stop()
	a, foreign := h.open(of, &exchange{}, nil), h.open(others, &exchange{}, nil)
	record(a, 2, 10)
	record(foreign, 2, 10)
	gone := h.open(of, &exchange{}, nil)
	gone.drop()
	for what, id := range map[string]string{
		"empty": "", "text": "event", "of another session": foreign.id(1), "of a stream that is forgotten": gone.id(0), "not said yet": a.id(3),
		"without a number": a.name, "of a stream that never was": of.epoch + "-zz-1", "with a tail": a.id(1) + "-1", "negative": a.name + "-1",
		"long": a.name + strings.Repeat("0", 100) + "1", "of another life": "00000000-1-1",
	} {
		if _, _, ok := h.find(of, id); ok {
			t.Errorf("an id that is %s is found: %q", what, id)
		}
	}
}

func TestASessionKeepsNoMoreThanItMay(t *testing.T) {
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	defer h.stop()
	for i := range 200 {
		tp := h.open(of, &exchange{}, nil)
		if tp == nil {
			t.Fatalf("stream %d is not kept", i)
		}
		record(tp, 3, 1000)
		tp.finish(true)
		if of.used > h.perSession {
			t.Fatalf("%d bytes after %d streams", of.used, i)
		}
		if got := tp.after(0); len(got) != 3 {
			t.Fatalf("of the newest stream %d events are left", len(got))
		}
	}
	checkBooks(t, h, of)
}

func TestALongStreamLosesItsOldestEventsFirst(t *testing.T) {
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	defer h.stop()
	tp := h.open(of, &exchange{}, nil)
	said := record(tp, 500, 1000)
	got := texts(tp.after(0))
	if len(got) < 50 || !slices.Equal(got, said[len(said)-len(got):]) {
		t.Errorf("%d events are left, the first is %.20q", len(got), got[0])
	}
	checkBooks(t, h, of)
}

func TestWhatIsLargerThanTheBufferCostsNothingElse(t *testing.T) {
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	defer h.stop()
	tp := h.open(of, &exchange{}, nil)
	said := record(tp, 3, 100)
	seq := tp.next()
	if tp.keep(seq, bytes.Repeat([]byte("x"), 64<<10), true) {
		t.Fatal("it is kept")
	}
	tp.insist(seq, []byte("too large"))
	if got := texts(tp.after(0)); !slices.Equal(got, append(said, "too large")) {
		t.Errorf("kept are %.200q", got)
	}
	checkBooks(t, h, of)
}

// An answer that a client has not had goes for no other stream; what all clients have had goes first.
func TestAllSessionsTogetherKeepNoMoreThanTheyMay(t *testing.T) {
	h := newShelf(sampleSessions(), sampleLimits(), nil)
	defer h.stop()
	var all []*tapes
	var owed []*tape
	for i := range 40 {
		of := &tapes{}
		all = append(all, of)
		tp := h.open(of, &exchange{}, nil)
		if tp == nil {
			continue
		}
		record(tp, 10, 1000)
		tp.finish(i%2 == 0)
		if i%2 == 1 {
			owed = append(owed, tp)
		}
		if h.used > h.whole {
			t.Fatalf("%d bytes with %d sessions", h.used, i)
		}
	}
	full := 0
	for _, tp := range owed {
		if len(tp.after(0)) == 10 {
			full++
		}
	}
	// 256 KiB hold more than twenty of these streams.
	if full != len(owed) || len(owed) != 20 {
		t.Errorf("of %d answers that are owed %d are whole", len(owed), full)
	}
	checkBooks(t, h, all...)
}

func TestWhatRestsGoesWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
		first, second, owed := h.open(of, &exchange{}, nil), h.open(of, &exchange{}, nil), h.open(of, &exchange{}, nil)
		for _, tp := range []*tape{first, second, owed} {
			record(tp, 1, 10)
		}
		left := func() (n int) {
			for _, tp := range []*tape{first, second, owed} {
				n += len(tp.after(0))
			}
			return n
		}
		first.finish(true)
		owed.finish(false)
		time.Sleep(sampleWindow / 2)
		second.finish(true)
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{sampleWindow/2 - time.Second, 3}, {2 * time.Second, 1}, {sampleWindow / 2, 0}} {
			time.Sleep(step.wait)
			synctest.Wait()
			if left() != step.want {
				t.Errorf("%d streams are left, want %d", left(), step.want)
			}
			checkBooks(t, h, of)
		}
		if n := h.bytes(); n != 0 {
			t.Errorf("%d bytes are left", n)
		}
	})
}

func TestOldEventsGoWhileTheClientIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
		tp := h.open(of, &exchange{}, nil)
		record(tp, 3, 10)
		time.Sleep(sampleWindow + time.Second)
		tp.keep(tp.next(), []byte("later"), true)
		if n := len(tp.after(0)); n != 4 {
			t.Errorf("with the client away %d events are left", n)
		}
		tp.keep(tp.next(), []byte("latest"), false)
		if got := texts(tp.after(0)); !slices.Equal(got, []string{"later", "latest"}) {
			t.Errorf("with the client there %q are left", got)
		}
		checkBooks(t, h, of)
	})
}

func TestNothingIsKeptWhereItIsSwitchedOffOrOver(t *testing.T) {
	off, noTime := sampleSessions(), sampleSessions()
	off.ResumeBufferBytes, noTime.ResumeWindow = 0, 0
	for what, s := range map[string]config.Sessions{"no bytes": off, "no time": noTime} {
		if newShelf(s, sampleLimits(), nil).open(&tapes{}, nil, nil) != nil {
			t.Errorf("with %s a stream is kept", what)
		}
	}
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	tp := h.open(of, &exchange{}, nil)
	record(tp, 3, 10)
	h.forget(of)
	if h.used != 0 || tp.keep(tp.next(), []byte("late"), false) || h.open(of, nil, nil) != nil {
		t.Errorf("of a session that is over %d bytes are kept", h.used)
	}
	checkBooks(t, h, of)
}

func TestAStandingStreamIsWrittenByOneResponse(t *testing.T) {
	h, of := newShelf(sampleSessions(), sampleLimits(), nil), &tapes{}
	defer h.stop()
	before, after := newStanding(), newStanding()
	tp := h.open(of, nil, before)
	if _, ok := tp.say(before, []byte("one")); !ok {
		t.Fatal("the first response may not speak")
	}
	missed, ok := tp.takeOver(after, 0)
	if !ok || !slices.Equal(texts(missed), []string{"one"}) {
		t.Fatalf("the next response gets %q, %v", texts(missed), ok)
	}
	select {
	case <-before.ending:
	default:
		t.Error("the first response goes on")
	}
	if _, ok := tp.say(before, []byte("two")); ok {
		t.Error("the first response still speaks")
	}
	tp.leave(before) // it ends later than the other begins
	if _, ok := tp.say(after, []byte("two")); !ok {
		t.Error("the next response may not speak")
	}
	if got := texts(tp.after(1)); !slices.Equal(got, []string{"two"}) {
		t.Errorf("kept are %q", got)
	}
}
