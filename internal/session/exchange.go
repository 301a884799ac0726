package session

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// writeTimeout bounds every write to a client: one that does not read must hold up nobody.
const writeTimeout = 15 * time.Second

// exchange is the response to one POST. Its first frame decides whether it is JSON or a stream of events, unless the
// client would rather have a stream; if none has come after a while it becomes a stream, so that nothing on the way
// takes the silence for the end. The stream of a
// session outlives the connection: what is said while the client is away is kept, and a GET goes on with it.
type exchange struct {
	m       *Manager
	accept  acceptance
	session *session // nil where it belongs to none
	// giveUp ends the requests of a client that has gone and does not come back; nil where nobody waits for it.
	giveUp func()
	// tooLarge makes what is kept in place of an answer for which there is no room.
	tooLarge func() []byte
	unread   *news // announcements for a legacy client; nil for none
	// questions are those of a legacy client; nil where it cannot be asked.
	questions *questions
	post      outlet

	mu    sync.Mutex
	state exchangeState
	out   *outlet     // where the response is written; nil while nobody takes it
	tape  *tape       // nil where nobody can come back to it
	timer *time.Timer // commits to a stream, then writes comments
	gone  *time.Timer // runs while the client is away; then giveUp
	buf   []byte
}

type exchangeState uint8

const (
	undecided exchangeState = iota
	streaming
	away // a stream whose client is not there and may come back
	over // finished, or nobody takes it any more
)

// outlet is an HTTP response that a stream is written to: that of its POST, or that of a GET which goes on with it.
type outlet struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	// left is closed when nothing will be written any more. It is nil for a POST, which waits for its requests.
	left chan struct{}
}

// newExchange begins the response to a POST that belongs to no session.
func (m *Manager) newExchange(w http.ResponseWriter, accept acceptance) *exchange {
	x := &exchange{m: m, accept: accept, post: outlet{w: w, rc: http.NewResponseController(w)}}
	x.begin()
	return x
}

// newSessionExchange begins the response to a POST of a session.
func (m *Manager) newSessionExchange(p *poster, s *session, giveUp func(), tooLarge func() []byte) *exchange {
	x := &exchange{m: m, accept: p.accept, session: s, giveUp: giveUp, tooLarge: tooLarge, post: outlet{w: p.w, rc: http.NewResponseController(p.w)}}
	if !s.alone() {
		x.unread, x.questions = s.unread, &s.questions
	}
	x.begin()
	return x
}

func (x *exchange) begin() {
	x.out = &x.post
	if !x.accept.stream {
		return
	}
	x.mu.Lock() // tick, which uses the timer, may come before the timer is kept
	x.timer = time.AfterFunc(x.m.opt.StreamAfter, x.tick)
	x.mu.Unlock()
}

// tick commits to a stream, or keeps the one there is alive.
func (x *exchange) tick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.state {
	case over, away:
		return
	case undecided:
		x.commit()
		if x.tape.primes(x.session) {
			return // that was a sign of life
		}
	}
	x.write(wire.AppendComment(x.buf[:0], ""))
	if x.state == streaming {
		x.timer.Reset(x.m.opt.KeepAlive)
	}
}

// commit makes the response a stream. x.mu is held.
func (x *exchange) commit() {
	streamHeaders(x.out.w.Header())
	x.out.w.WriteHeader(http.StatusOK)
	x.state = streaming
	x.m.open[streamPost].Add(1)
	x.timer.Reset(x.m.opt.KeepAlive)
	if x.session != nil && !x.session.alone() {
		x.tape = x.m.shelf.open(&x.session.tapes, x, nil)
	}
	if x.tape.primes(x.session) {
		x.write(x.tape.appendPriming(x.buf[:0]))
	}
	if x.unread != nil {
		x.announce()
	}
}

// announce writes what the client has not been told yet.
func (x *exchange) announce() {
	c := x.unread.take()
	for _, a := range announcements(c, "") {
		x.say(a)
	}
	if x.state == over {
		x.unread.add(c)
	}
}

// streamHeaders are those of every event stream; nothing on the way may compress or hold it back.
func streamHeaders(h http.Header) {
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache, no-transform"}
	h["X-Accel-Buffering"] = []string{"no"}
}

// say sends a frame as an event and keeps it for a client that loses it. x.mu is held.
func (x *exchange) say(frame []byte) {
	id := ""
	if x.tape != nil {
		seq := x.tape.next()
		x.tape.keep(seq, frame, x.state == away)
		id = x.tape.id(seq)
	}
	x.write(wire.AppendEvent(x.buf[:0], "message", id, frame))
}

// write sends bytes of the stream and flushes. A client that does not take them in time is taken to be gone. x.mu is
// held.
func (x *exchange) write(b []byte) {
	x.buf = b
	if x.state != streaming {
		return
	}
	if err := x.out.write(b); err != nil {
		x.m.count.Drop(count.DropClientSlow)
		x.lose()
	}
}

// write sends bytes within the time that a client has to take them.
func (o *outlet) write(b []byte) error {
	_ = o.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := o.w.Write(b); err != nil {
		return err
	}
	return o.rc.Flush()
}

// leave lets go of the response that was written to. deadline is for what the HTTP server writes at its end. x.mu is held.
func (x *exchange) leave(deadline time.Time) {
	o := x.out
	if o == nil {
		return
	}
	x.out = nil
	_ = o.rc.SetWriteDeadline(deadline)
	if o.left != nil {
		close(o.left)
	} else if x.state == streaming {
		x.m.open[streamPost].Add(-1)
	}
}

// end ends the response for good. x.mu is held.
func (x *exchange) end() {
	x.leave(time.Time{}) // the connection may carry another request
	x.state = over
	for _, t := range []*time.Timer{x.timer, x.gone} {
		if t != nil {
			t.Stop()
		}
	}
}

// Notify implements proxy.Sink.
func (x *exchange) Notify(frame []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == over {
		return
	}
	if !x.accept.stream {
		x.m.count.Drop(count.DropNotification)
		return
	}
	if x.state == undecided {
		x.commit()
	}
	x.say(frame)
}

// finish sends the answer and ends the response.
func (x *exchange) finish(a *proxy.Answer, status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.state == over:
		return
	case x.state == undecided && (x.accept.json && !(x.accept.streamFirst && status == http.StatusOK) || a.Status != 0):
		x.json(a, status)
		return
	case x.state == undecided:
		x.commit()
	}
	x.sayLast(a.Bytes())
	x.tape.finish(x.state == streaming)
	x.end()
}

// sayLast sends the answer. It is kept until it has certainly arrived or nobody will ask for it. x.mu is held.
func (x *exchange) sayLast(frame []byte) {
	id := ""
	if x.tape != nil {
		seq := x.tape.next()
		id = x.tape.id(seq)
		if !x.tape.keep(seq, frame, x.state == away) {
			x.tape.insist(seq, x.tooLarge())
		}
	}
	x.write(wire.AppendEvent(x.buf[:0], "message", id, frame))
}

// json answers with one JSON object. x.mu is held.
func (x *exchange) json(a *proxy.Answer, status int) {
	h := x.out.w.Header()
	if a.Status != 0 {
		status = a.Status
		h["Www-Authenticate"] = a.Authenticate
	}
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(a.Len())}
	_ = x.out.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	x.out.w.WriteHeader(status)
	for _, part := range a.Parts() {
		if !x.writePart(part) {
			x.m.count.Drop(count.DropClientSlow)
			break
		}
	}
	x.end()
}

// pieceBytes is what a client must take within the time of one write.
const pieceBytes = 1 << 20

// writePart writes a part of an answer, a large one in pieces that each have their time. x.mu is held.
func (x *exchange) writePart(part []byte) bool {
	for len(part) > 0 {
		n := min(len(part), pieceBytes)
		if _, err := x.out.w.Write(part[:n]); err != nil {
			return false
		}
		if part = part[n:]; len(part) > 0 {
			_ = x.out.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		}
	}
	return true
}

// finishSilently ends the response of a request that the client has cancelled: nothing more is said to it. Where the
// client can only take JSON it gets an error, since HTTP must say something.
func (x *exchange) finishSilently(id []byte) {
	if !x.accept.stream {
		a := proxy.Failure(id, wire.CodeInvalidRequest, "the request was cancelled", nil)
		x.finish(&a, http.StatusOK)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == undecided {
		x.commit()
	}
	if x.state == streaming {
		_ = x.out.rc.Flush()
	}
	x.tape.drop()
	x.end()
}

// silent ends the exchange of a client that is not there any more.
func (x *exchange) silent() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.end()
}
