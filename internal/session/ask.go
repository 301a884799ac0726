package session

import (
	"context"
	"crypto/rand"
	"strconv"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// questions are the requests that a client has been sent and has not answered. Their ids are ours: an upstream's would
// meet those of other upstreams.
type questions struct {
	mu      sync.Mutex
	name    string // what ids begin with; another one in each life of a session, so that no late answer meets a new question
	last    uint64
	waiting map[string]chan []byte
}

// open makes an id and the place of its answer.
func (q *questions) open() (id string, answer chan []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting, q.name = map[string]chan []byte{}, "ask-"+rand.Text()[:8]+"-"
	}
	q.last++
	// A string, so that it meets no number of the client's own requests in a careless table.
	id = `"` + q.name + strconv.FormatUint(q.last, 10) + `"`
	answer = make(chan []byte, 1)
	q.waiting[wire.IDKey([]byte(id))] = answer
	return id, answer
}

func (q *questions) close(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, wire.IDKey([]byte(id)))
}

// deliver brings an answer of the client to who waits for it; false where nobody does.
func (q *questions) deliver(f *wire.Frame) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := wire.IDKey(f.ID.Of(f.Raw))
	answer := q.waiting[key]
	if answer == nil {
		return false
	}
	delete(q.waiting, key)
	answer <- append([]byte(nil), f.Raw...)
	return true
}

// answered brings an answer of a client to the question it is for.
func (m *Manager) answered(s *session, f *wire.Frame) {
	if !s.questions.deliver(f) {
		m.count.Drop(count.DropAnswer)
	}
}

// ask sends a question with send and waits for its answer.
func (q *questions) ask(ctx context.Context, method string, params []byte, limits wire.Limits, send func(frame []byte) bool) (*wire.Frame, error) {
	id, answer := q.open()
	defer q.close(id)
	frame := append([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":`), wire.AppendString(nil, method)...)
	if len(params) > 0 {
		frame = append(append(frame, `,"params":`...), params...)
	}
	if !send(append(frame, '}')) {
		return nil, proxy.ErrCannotAsk
	}
	select {
	case raw := <-answer:
		return wire.Parse(raw, wire.Downstream, limits)
	case <-ctx.Done():
		send([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`))
		return nil, context.Cause(ctx)
	}
}

// Ask implements proxy.Sink.
func (x *exchange) Ask(ctx context.Context, method string, params []byte) (*wire.Frame, error) {
	if x.questions == nil || !x.accept.stream {
		return nil, proxy.ErrCannotAsk
	}
	return x.questions.ask(ctx, method, params, x.m.limits, x.push)
}

// push writes a frame to the stream of this request, or keeps it for the client that is away; false where neither is possible.
func (x *exchange) push(frame []byte) bool {
	x.Notify(frame)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state == streaming || x.state == away
}
