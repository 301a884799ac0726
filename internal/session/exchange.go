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

// exchange is the response to one POST. Its first frame decides whether it is JSON or a stream of events; if none has
// come after a while it becomes a stream, so that nothing on the way takes the silence for the end.
type exchange struct {
	m      *Manager
	w      http.ResponseWriter
	rc     *http.ResponseController
	accept acceptance
	unread *news // announcements for a legacy client; nil for none
	// questions are those of a legacy client; nil where it cannot be asked.
	questions *questions

	mu    sync.Mutex
	state exchangeState
	timer *time.Timer // commits to a stream, then writes comments
	buf   []byte
}

type exchangeState uint8

const (
	undecided exchangeState = iota
	streaming
	over // finished, or the client does not take it any more
)

// newExchange begins the response to a POST; s is nil where it belongs to no session.
func (m *Manager) newExchange(w http.ResponseWriter, accept acceptance, s *session) *exchange {
	x := &exchange{m: m, w: w, rc: http.NewResponseController(w), accept: accept}
	if s != nil && !s.alone() {
		x.unread, x.questions = s.unread, &s.questions
	}
	if accept.stream {
		x.mu.Lock() // tick, which uses the timer, may come before the timer is kept
		x.timer = time.AfterFunc(m.opt.StreamAfter, x.tick)
		x.mu.Unlock()
	}
	return x
}

// tick commits to a stream, or keeps the one there is alive.
func (x *exchange) tick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.state {
	case over:
		return
	case undecided:
		x.commit()
	}
	x.write(wire.AppendComment(x.buf[:0], ""))
	if x.state == streaming {
		x.timer.Reset(x.m.opt.KeepAlive)
	}
}

// commit makes the response a stream. x.mu is held.
func (x *exchange) commit() {
	h := x.w.Header()
	streamHeaders(h)
	x.w.WriteHeader(http.StatusOK)
	x.state = streaming
	x.m.open[streamPost].Add(1)
	x.timer.Reset(x.m.opt.KeepAlive)
	if x.unread != nil {
		x.announce()
	}
}

// announce writes what the client has not been told yet.
func (x *exchange) announce() {
	c := x.unread.take()
	for _, a := range announcements(c, "") {
		x.write(wire.AppendEvent(x.buf[:0], "message", "", a))
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

// write sends bytes of the stream and flushes. A client that does not take them in time is given up. x.mu is held.
func (x *exchange) write(b []byte) {
	x.buf = b
	if x.state != streaming {
		return
	}
	_ = x.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := x.w.Write(b)
	if err == nil {
		err = x.rc.Flush()
	}
	if err != nil {
		x.leave()
		x.m.count.Drop(count.DropClientSlow)
	}
}

// leave ends the stream for good. x.mu is held.
func (x *exchange) leave() {
	if x.state == streaming {
		x.m.open[streamPost].Add(-1)
	}
	x.state = over
	if x.timer != nil {
		x.timer.Stop()
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
	x.write(wire.AppendEvent(x.buf[:0], "message", "", frame))
}

// finish sends the answer and ends the response.
func (x *exchange) finish(a *proxy.Answer, status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == over {
		return
	}
	if x.state == undecided && x.accept.json {
		x.json(a, status)
		return
	}
	if x.state == undecided {
		x.commit()
	}
	x.write(wire.AppendEvent(x.buf[:0], "message", "", a.Bytes()))
	x.end()
}

// json answers with one JSON object. x.mu is held.
func (x *exchange) json(a *proxy.Answer, status int) {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(a.Len())}
	_ = x.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	x.w.WriteHeader(status)
	for _, part := range a.Parts() {
		if len(part) > 0 {
			if _, err := x.w.Write(part); err != nil {
				x.m.count.Drop(count.DropClientSlow)
				break
			}
		}
	}
	x.end()
}

// end takes the write deadline back, for the next request on this connection. x.mu is held.
func (x *exchange) end() {
	x.leave()
	_ = x.rc.SetWriteDeadline(time.Time{})
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
		_ = x.rc.Flush()
		x.end()
	}
}

// silent ends the exchange of a client that is not there any more.
func (x *exchange) silent() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state != over {
		x.end()
	}
}
