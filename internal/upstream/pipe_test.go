package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// testPipe is a pipe whose other end the test holds; no reader runs.
func testPipe(t *testing.T, r *rig) (p *pipe, theirs net.Conn, broken *atomic.Int32) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	broken = new(atomic.Int32)
	p = newPipe(r.env, ours)
	p.broken = func(error) { broken.Add(1) }
	return p, theirs, broken
}

func TestSendWritesOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, theirs, _ := testPipe(t, newRig(t))
		sent := make(chan error)
		for _, frame := range []string{`{"a":1}`, `{"b":2}`} {
			go func() { sent <- p.send(t.Context(), []byte(frame)) }()
			got, err := bufio.NewReader(theirs).ReadString('\n')
			if got != frame+"\n" || err != nil {
				t.Errorf("the server read %q, %v", got, err)
			}
			if err := <-sent; err != nil {
				t.Errorf("send gives %v", err)
			}
		}
	})
}

// A caller whose time passes while another one writes takes its frame back, and the connection is none the worse.
func TestSendTakesItsFrameBackBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, theirs, broken := testPipe(t, newRig(t))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- p.send(t.Context(), []byte(`{"first":true}`)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBudget)
		defer cancel()
		go func() { second <- p.send(ctx, []byte(`{"second":true}`)) }()
		if err := <-second; !errors.Is(err, errBudget) {
			t.Errorf("the second send gives %v, want the cause of its context", err)
		}
		go func() { second <- p.send(t.Context(), []byte(`{"third":true}`)) }()
		lines := bufio.NewReader(theirs)
		for _, want := range []string{`{"first":true}`, `{"third":true}`} {
			if got, _ := lines.ReadString('\n'); got != want+"\n" {
				t.Errorf("the server read %q, want %s", got, want)
			}
		}
		if err := errors.Join(<-first, <-second); err != nil || broken.Load() != 0 {
			t.Errorf("sends give %v, broken %d times", err, broken.Load())
		}
	})
}

// Nothing was written when the time of the writer passes: its frame is taken back, and its deadline does not meet the
// next writer.
func TestSendWithoutAByteCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, theirs, broken := testPipe(t, newRig(t))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errBudget)
		defer cancel()
		if err := p.send(ctx, []byte(`{"a":1}`)); !errors.Is(err, errBudget) {
			t.Errorf("send gives %v", err)
		}
		sent := make(chan error)
		go func() { sent <- p.send(t.Context(), []byte(`{"b":2}`)) }()
		pass(time.Minute) // far beyond the first one's time
		if got, _ := bufio.NewReader(theirs).ReadString('\n'); got != `{"b":2}`+"\n" {
			t.Errorf("the server read %q", got)
		}
		if err := <-sent; err != nil || broken.Load() != 0 {
			t.Errorf("send gives %v, broken %d times", err, broken.Load())
		}
	})
}

func TestHalfAFrameCostsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, theirs, broken := testPipe(t, newRig(t))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sent := make(chan error)
		go func() { sent <- p.send(ctx, []byte(`{"a":"long enough"}`)) }()
		if _, err := io.ReadFull(theirs, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		err := <-sent
		wantReason(t, err, ReasonUncertain)
		if !errors.Is(err, os.ErrDeadlineExceeded) || broken.Load() != 1 {
			t.Errorf("send gives %v, broken %d times", err, broken.Load())
		}
	})
}

func TestSendOnADeadPipe(t *testing.T) {
	r := newRig(t)
	p, theirs, broken := testPipe(t, r)
	_ = theirs.Close()
	err := p.send(t.Context(), []byte(`{}`))
	wantReason(t, err, ReasonUnavailable)
	if !errors.Is(err, ErrNeverSent) || broken.Load() != 0 {
		t.Errorf("send gives %v, broken %d times", err, broken.Load())
	}
	<-p.turn // somebody else writes
	close(p.done)
	wantReason(t, p.send(t.Context(), []byte(`{}`)), ReasonUnavailable)
	p.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.done = make(chan struct{})
	if err := p.send(ctx, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("send of a caller that is gone gives %v", err)
	}
}

// feed runs a reader over a text and gives the pipe when it has ended.
func feed(t *testing.T, r *rig, text string, open ...uint64) (*pipe, map[uint64]*mailbox) {
	t.Helper()
	p, _, _ := testPipe(t, r)
	boxes := map[uint64]*mailbox{}
	for _, id := range open {
		boxes[id] = mustOpen(t, p.mux, id)[0]
	}
	p.run(strings.NewReader(text))
	<-p.done
	return p, boxes
}

func TestWhatAPipeMakesOfALine(t *testing.T) {
	const one = `{"jsonrpc":"2.0","id":1,"result":{}}`
	const two = `{"jsonrpc":"2.0","id":2,"result":{}}`
	for _, c := range []struct {
		name, text string
		one, two   string // answer, broken answer or nothing
		noise      float64
	}{
		{"a message", one + "\n", "answer", "", 0},
		{"without its end", one, "answer", "", 0},
		{"CRLF", one + "\r\n", "answer", "", 0},
		{"a byte order mark", "\xef\xbb\xbf" + one + "\n", "answer", "", 0},
		{"blank lines", "\n  \n\r\n" + one + "\n", "answer", "", 0},
		{"two on a line", one + two + "\n", "answer", "answer", 0},
		{"a batch", "[" + one + "," + two + "]\n", "answer", "answer", 0},
		{"a banner", "Server ready on stdio\n" + one + "\n", "answer", "", 1},
		{"behind noise", "\x1b[32mINFO\x1b[0m " + one + "\n", "answer", "", 1},
		{"a broken one", `{"jsonrpc":"2.0","id":1,"result":{"a":}}` + "\n" + two + "\n", "broken", "answer", 1},
		{"a broken one without a known id", `{"jsonrpc":"2.0","result":{"a":}` + "\n" + two + "\n", "", "answer", 1},
		{"no JSON-RPC", `{"level":"info","msg":"started"}` + "\n" + one + "\n", "answer", "", 1},
		{"an answer of no known shape", `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}` + "\n", "broken", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			_, boxes := feed(t, r, c.text, 1, 2)
			for id, want := range map[uint64]string{1: c.one, 2: c.two} {
				if got := outcome(boxes[id]); got != want {
					t.Errorf("call %d got %q, want %q", id, got, want)
				}
			}
			if got := r.dropped(count.DropNoise); got != c.noise {
				t.Errorf("%v lines count as noise, want %v", got, c.noise)
			}
		})
	}
}

// outcome tells what a mailbox holds after the end of its connection.
func outcome(b *mailbox) string {
	f, err := b.poll()
	var e *Error
	switch {
	case f != nil:
		return "answer"
	case errors.As(err, &e) && e.Reason == ReasonTransport:
		return "broken"
	case errors.As(err, &e) && e.Reason == ReasonUncertain:
		return ""
	}
	return "no outcome: " + err.Error()
}

func TestALineOverTheBoundCostsItsCallOnly(t *testing.T) {
	r := newRig(t)
	r.env.maxFrame = 1000
	big := `{"jsonrpc":"2.0","id":1,"result":{"t":"` + strings.Repeat("x", 5000) + `"}}` + "\n"
	_, boxes := feed(t, r, big+`{"jsonrpc":"2.0","id":2,"result":{}}`+"\n", 1, 2)
	if got := outcome(boxes[1]) + " " + outcome(boxes[2]); got != "broken answer" {
		t.Errorf("got %q", got)
	}
	if r.limit(count.LimitFrame) != 1 {
		t.Error("the bound is not counted")
	}
}

// A line that is too long and whose id is not to be found fails the only call if it is an answer, and else none: what a
// server says on its own account, or by mistake, has an answer of no call in it.
func TestALineOverTheBoundWithoutAnID(t *testing.T) {
	big := strings.Repeat("x", 5000)
	for name, c := range map[string]struct{ text, want string }{
		"an answer":            {`{"jsonrpc":"2.0","result":{"t":"` + big + `"},"id":1,"x":"` + big + `"}`, "broken"},
		"an announcement":      {`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + big + `"}}`, "answer"},
		"a question, our id":   {`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"t":"` + big + `"}}`, "answer"},
		"a question, id last":  {`{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"t":"` + big + `"},"id":1}`, "answer"},
		"noise":                {big, "answer"},
		"nobody can tell what": {`{"x":"` + big + `"}`, "answer"},
	} {
		r := newRig(t)
		r.env.maxFrame = 1000
		_, boxes := feed(t, r, c.text+"\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", 1)
		if got := outcome(boxes[1]); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A server that asks and asks without reading the replies must not pile up goroutines or memory.
func TestAFloodOfPingsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p, theirs, _ := testPipe(t, r)
		pings := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", 20*maxSoon)
		if err := p.read(newLineReader(strings.NewReader(pings), 1000)); err != io.EOF {
			t.Error(err)
		}
		synctest.Wait()
		p.wg.mu.Lock()
		if n := p.wg.running; n != maxSoon {
			t.Errorf("%d goroutines wait to reply, want %d", n, maxSoon)
		}
		p.wg.mu.Unlock()
		_ = theirs.Close()
		p.wg.Stop()
		if p.wg.Soon(func() {}) {
			t.Error("a stopped group begins something")
		}
	})
}

// The first Next writes the request; what comes back is read by the same goroutine.
func TestPipeExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p, theirs, _ := testPipe(t, r)
		go p.run(p.w.(net.Conn))
		x, err := p.Start(t.Context(), &Outgoing{ID: 5, Method: "tools/call", Frame: []byte(`{"jsonrpc":"2.0","id":5,"method":"tools/call"}`)})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			lines := bufio.NewReader(theirs)
			if got, _ := lines.ReadString('\n'); !strings.Contains(got, `"id":5`) {
				t.Errorf("the server read %q", got)
			}
			_, _ = io.WriteString(theirs, `{"jsonrpc":"2.0","id":"a","method":"roots/list"}`+"\n")
			if got, _ := lines.ReadString('\n'); got != `{"jsonrpc":"2.0","id":"a","result":{}}`+"\n" {
				t.Errorf("the server read %q", got)
			}
			_, _ = io.WriteString(theirs, `{"jsonrpc":"2.0","id":5,"result":{"ok":true}}`+"\n")
			if got, _ := lines.ReadString('\n'); got != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,"reason":"why \"not\""}}`+"\n" {
				t.Errorf("the server read %q", got)
			}
			_ = theirs.Close()
		}()
		f, err := x.Next(t.Context())
		if err != nil || f.Method != "roots/list" {
			t.Fatalf("Next = %v, %v", f, err)
		}
		if err := x.Respond(t.Context(), []byte(`{"jsonrpc":"2.0","id":"a","result":{}}`)); err != nil {
			t.Error(err)
		}
		if f := answerOf(t.Context(), t, x); string(f.Result.Of(f.Raw)) != `{"ok":true}` {
			t.Errorf("the answer is %s", f.Raw)
		}
		x.Close(false)
		if err := p.Cancel(t.Context(), 6, `why "not"`); err != nil {
			t.Error(err)
		}
		<-p.done
		_, err = p.Start(t.Context(), &Outgoing{ID: 7})
		wantReason(t, err, ReasonUncertain)
		r.wantBudgetWhole()
	})
}
