package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

var errBudget = errors.New("limits.max_buffered_bytes is reached")

// mux finds the call that a frame on a shared channel belongs to: a child's stdout, the one stream of HTTP+SSE.
// Answers are matched by our own id, progress by our own token, which is the id, and listens by subscription id.
type mux struct {
	env   *env
	reply func(frame []byte) // answers a request of the upstream, off the reader

	mu      sync.Mutex
	pending map[uint64]*mailbox
	// cancelled calls are unanswered too: a request of the upstream may be theirs. Since most servers never answer them,
	// they count only for a while.
	cancelled map[uint64]time.Time
	err       error
}

func newMux(e *env, reply func([]byte)) *mux {
	return &mux{env: e, reply: reply, pending: map[uint64]*mailbox{}, cancelled: map[uint64]time.Time{}}
}

// standing are the requests that are the proxy's own and ask the client nothing: they stand beside the one call that a
// question or a log message of the server can belong to.
var standing = map[string]bool{"subscriptions/listen": true, "logging/setLevel": true, "resources/subscribe": true, "resources/unsubscribe": true}

// open registers a call before it is written, so that no answer can come too early. A standing one asks for
// nothing and logs nothing.
func (m *mux) open(out *Outgoing) (*mailbox, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	box := newMailbox(m.env.budget, m.env.count)
	box.standing, box.task = out.Quiet || standing[out.Method], out.Task
	m.pending[out.ID] = box
	return box, nil
}

// forget ends the interest in a call; cancelled says that its answer may still come. Of a standing one nothing else does.
func (m *mux) forget(id uint64, cancelled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	box, unanswered := m.pending[id]
	delete(m.pending, id)
	if unanswered && cancelled && !box.standing && len(m.cancelled) < maxCancelled {
		m.cancelled[id] = time.Now()
	}
}

const (
	// maxCancelled bounds how many cancelled calls without an answer are remembered.
	maxCancelled = 1024
	// cancelledFor is how long a cancelled call may still be the one that a request of the upstream belongs to.
	cancelledFor = 30 * time.Second
)

// fail ends all calls, and those to come, with this error.
func (m *mux) fail(err error) {
	m.mu.Lock()
	if m.err == nil {
		m.err = err
	}
	boxes := m.pending
	m.pending = map[uint64]*mailbox{}
	m.mu.Unlock()
	for _, b := range boxes {
		b.close(err)
	}
}

// failLong ends the call whose answer is too long to be kept. Where its id cannot be found it can only be that of the one
// call that is unanswered, if it is an answer at all: a notification or a request of the server costs no call.
func (m *mux) failLong(l line, err error) bool {
	kind := kindAtHead(l.head)
	if kind == wire.KindRequest {
		return false
	}
	id := idAtEdge(l)
	if id == 0 && kind != wire.KindResponse {
		return false
	}
	return m.failOne(id, err)
}

// failOne ends the call with that id; without one (zero), the only call there is.
func (m *mux) failOne(id uint64, err error) bool {
	m.mu.Lock()
	if id == 0 {
		id, _ = m.onlyPending()
	}
	box := m.pending[id]
	delete(m.pending, id)
	m.mu.Unlock()
	if box == nil {
		return false
	}
	box.close(err)
	return true
}

// dispatch brings one frame to where it belongs. It never blocks.
func (m *mux) dispatch(f *wire.Frame) {
	switch f.Kind {
	case wire.KindResponse, wire.KindError:
		m.answer(f)
	case wire.KindNotification:
		m.notification(f)
	case wire.KindRequest:
		m.request(f)
	}
}

func (m *mux) answer(f *wire.Frame) {
	id, ok := wire.ParseUpstreamID(f.ID.Of(f.Raw))
	if !ok {
		// An error without an id tells that something we wrote could not be read; it belongs to no call.
		m.env.noise("an answer without an id of ours", f.Raw)
		m.env.count.Drop(count.DropAnswer)
		return
	}
	m.mu.Lock()
	box := m.pending[id]
	delete(m.pending, id)
	delete(m.cancelled, id)
	m.mu.Unlock()
	if box == nil {
		m.env.count.Drop(count.DropAnswer)
		return
	}
	box.put(f)
}

func (m *mux) notification(f *wire.Frame) {
	var tok wire.Span
	switch {
	case f.Method == "notifications/progress":
		tok = f.Body.Get(f.Raw, "progressToken")
	case f.Meta.Has(f.Raw, wire.MetaSubscriptionID):
		tok = f.Meta.Get(f.Raw, wire.MetaSubscriptionID)
	case f.Method == "notifications/message" || f.Method == "notifications/elicitation/complete" || f.Method == "notifications/cancelled":
		// Nothing says whose it is; where only one call is unanswered it can only be that one's.
		if box := m.owner(f); box == nil || !box.put(f) {
			m.env.peer.Notification(f)
		}
		return
	default:
		m.env.peer.Notification(f)
		return
	}
	id, ok := wire.ParseUpstreamID(tok.Of(f.Raw))
	m.mu.Lock()
	box := m.pending[id]
	m.mu.Unlock()
	switch {
	case ok && box != nil:
		box.put(f)
	case ok && f.Method == "notifications/progress":
		m.env.peer.Notification(f) // the call may have been answered with a task that goes on
	default:
		m.env.count.Drop(count.DropProgress)
	}
}

// request attributes a request of the upstream to the call that its task belongs to, or to the only unanswered one, or
// refuses it: nothing else on a shared channel says whose it is.
func (m *mux) request(f *wire.Frame) {
	if f.Method == "ping" {
		m.reply(pong(f))
		return
	}
	if box := m.owner(f); box != nil && box.put(f) {
		return
	}
	if m.env.asides.request(f, m.reply) {
		return
	}
	m.env.peer.Refused(f, m.crowded())
	m.reply(Refusal(f))
}

// crowded says whether calls are under way that a request may belong to.
func (m *mux) crowded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.pending {
		if !b.standing {
			return true
		}
	}
	return len(m.cancelled) > 0
}

// owner gives the mailbox of the call that a frame belongs to: the one that asks about the task that it names
// (2025-11-25, tasks, "Related Task Metadata"), or, where it names none, the only one there is; nil where nobody can tell.
func (m *mux) owner(f *wire.Frame) *mailbox {
	related, ok := wire.ObjectAt(f.Raw, f.Meta.Get(f.Raw, wire.MetaRelatedTask))
	if !ok {
		return m.only()
	}
	id, _ := wire.DecodeString(related.Get(f.Raw, "taskId").Of(f.Raw))
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.pending {
		if b.task == id && id != "" {
			return b
		}
	}
	return nil
}

// only gives the mailbox of the one call that is unanswered; nil where there are others, cancelled ones among them.
func (m *mux) only() (only *mailbox) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, only = m.onlyPending()
	return only
}

// onlyPending is only, with the id. m.mu is held.
func (m *mux) onlyPending() (of uint64, only *mailbox) {
	for id, at := range m.cancelled {
		if time.Since(at) < cancelledFor {
			return 0, nil
		}
		delete(m.cancelled, id)
	}
	for id, b := range m.pending {
		switch {
		case b.standing:
		case only != nil:
			return 0, nil
		default:
			of, only = id, b
		}
	}
	return of, only
}

// pong answers a ping.
func pong(f *wire.Frame) []byte {
	return answerTo(f, `"result":{}`)
}

// Refusal is the proper answer to a request of an upstream that cannot be brought to anybody: an elicitation is
// declined, anything else is not supported.
func Refusal(f *wire.Frame) []byte {
	if f.Method == "elicitation/create" {
		return answerTo(f, `"result":{"action":"decline"}`)
	}
	return answerTo(f, `"error":{"code":-32601,"message":"the client behind this proxy cannot answer this request"}`)
}

func answerTo(f *wire.Frame, member string) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","id":`), f.ID.Of(f.Raw)...)
	out = append(out, ',')
	out = append(out, member...)
	return append(out, '}')
}

// boxExchange is a call whose frames come through a mailbox.
type boxExchange struct {
	m      *mux
	id     uint64
	box    *mailbox
	write  func(ctx context.Context) error // the first Next writes; nil once that is done
	send   func(ctx context.Context, frame []byte) error
	closed bool
}

func (x *boxExchange) Next(ctx context.Context) (*wire.Frame, error) {
	if w := x.write; w != nil {
		x.write = nil
		if err := w(ctx); err != nil {
			return nil, err
		}
	}
	return x.box.take(ctx)
}

func (x *boxExchange) Respond(ctx context.Context, frame []byte) error { return x.send(ctx, frame) }

func (x *boxExchange) Close(cancelled bool) {
	if !x.closed {
		x.closed = true
		x.m.forget(x.id, cancelled)
		// An answer may have come that nobody has taken; what it holds of the budget goes back.
		x.box.drop()
	}
}
