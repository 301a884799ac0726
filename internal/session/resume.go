package session

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// headerLastEvent names the last event that a client has seen of a stream that broke.
const headerLastEvent = "Last-Event-Id"

// retryAfterBreak is how long clients are asked to wait before they come back to a stream that broke.
const retryAfterBreak = "1000" // milliseconds

// primes says whether a stream begins with an event that only carries an id. Clients of older revisions take its empty
// data for a message (2025-11-25, transports, "Listening for Messages from the Server").
func (t *tape) primes(s *session) bool { return t != nil && s.version >= wire.Rev20251125 }

// appendPriming appends the event that a stream begins with, so that a client can come back before anything is said.
func (t *tape) appendPriming(dst []byte) []byte {
	return wire.AppendEvent(append(dst, "retry: "+retryAfterBreak+"\n"...), "", t.id(0), nil)
}

// lost notes that the connection of a response is lost. One that the stream has left already does not matter.
func (x *exchange) lost(o *outlet) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.out == o {
		x.lose()
	}
}

// lose begins the time that the client has to come back. x.mu is held.
func (x *exchange) lose() {
	x.leave(time.Now().Add(writeTimeout))
	if x.tape != nil {
		x.state = away
	} else {
		x.state = over // no event id has told the client how to come back
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.giveUp != nil {
		x.gone = time.AfterFunc(x.session.resumeWindow(x.m), x.giveUp)
	}
}

// Pause ends the stream before its answer, as the upstream has ended its own, and leaves it to the client to come back
// (2025-11-25, transports, "Sending Messages to the Server"). Only a client that has been given an event id, or is given
// one now, can; for any other the stream stays open. It implements [upstream.Pauser].
func (x *exchange) Pause(retry time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.accept.stream || x.session == nil || x.session.version < wire.Rev20251125 {
		return
	}
	if x.state == undecided {
		x.commit()
	}
	if x.state != streaming || x.tape == nil {
		return
	}
	x.write(append(strconv.AppendInt(append(x.buf[:0], "retry: "...), max(retry.Milliseconds(), 1), 10), "\n\n"...))
	if x.state == streaming && x.out.cut() {
		x.lose()
	}
}

// cut ends the response while the goroutine that serves it goes on; false where the connection does not allow it. A GET
// ends by itself once it is left.
func (o *outlet) cut() bool {
	if o.left != nil {
		return true
	}
	conn, _, err := o.rc.Hijack()
	if err != nil {
		return false
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = io.WriteString(conn, "0\r\n\r\n") // the last chunk of a body whose end is not known beforehand
	_ = conn.Close()
	return true
}

// resumeWindow is how long the requests of a client that has gone go on.
func (s *session) resumeWindow(m *Manager) time.Duration {
	if s.alone() {
		return 0
	}
	return m.opt.Sessions.ResumeWindow
}

// resume goes on with the stream on another response, with what came after that event; false where it is too late. The
// client may be back before its old connection is known to be lost.
func (x *exchange) resume(o *outlet, seq uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.state != streaming && x.state != away:
		return false
	case x.gone != nil && !x.gone.Stop():
		return false
	}
	x.gone = nil
	x.leave(time.Now().Add(writeTimeout))
	x.out, x.state = o, streaming
	x.timer.Reset(x.m.opt.KeepAlive)
	x.write(wire.AppendComment(x.buf[:0], "")) // the client is told at once that it is back, whatever there is to say
	for _, k := range x.tape.after(seq) {
		x.write(wire.AppendEvent(x.buf[:0], "message", x.tape.id(k.seq), k.frame))
	}
	return true
}

// resume serves a GET that comes back to the stream of a call: it says what the client has missed and goes on until the
// answer. False means that there is nothing to come back to.
func (m *Manager) resume(es *eventStream, r *http.Request, t *tape, seq uint64) bool {
	if x := t.going(); x != nil {
		o := &outlet{w: es.w, rc: es.rc, left: make(chan struct{})}
		if x.resume(o, seq) {
			m.metrics.resumed[streamPost].Inc()
			stop := context.AfterFunc(r.Context(), func() { x.lost(o) })
			defer stop()
			<-o.left
			return true
		}
	}
	rest := t.after(seq)
	if len(rest) == 0 || t.going() != nil {
		return false
	}
	m.metrics.resumed[streamPost].Inc()
	if es.again(t, rest) {
		t.finish(true)
	}
	return true
}

// takeOver makes st go on with a standing stream, and gives what its client has missed.
func (t *tape) takeOver(st *standing, seq uint64) ([]kept, bool) {
	before, ok := t.take(st)
	if !ok {
		return nil, false
	}
	if before != nil {
		before.end()
	}
	return t.after(seq), true
}
