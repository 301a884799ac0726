package testmcp

import (
	"context"
	"fmt"
	"net/http"
	"sync"
)

// session is one conversation of a running server: a pipe, a legacy HTTP session, or a single modern HTTP request.
type session struct {
	in    *Instance
	label string
	out   func(frame []byte, rel *Call) // rel is the call that the frame belongs to, nil for none

	mu       sync.Mutex
	legacy   bool // initialize was answered here
	version  string
	caps     Raw
	calls    map[string]*Call // unanswered, by id
	asks     map[string]chan Raw
	lastAsk  int
	values   map[string]int
	requests int
}

func (s *session) isLegacy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.legacy
}

func (s *session) negotiated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// write records a frame and sends it on the stream of rel, or on the one for unrelated messages.
func (s *session) write(frame []byte, rel *Call) {
	m := parseMessage(frame)
	s.in.record(Record{Kind: Out, Conn: s.label, Frame: frame, Method: m.Method, ID: m.ID, answer: m.isAnswer()})
	if rel != nil && m.isAnswer() {
		s.forget(rel)
	}
	s.out(frame, rel)
}

func (s *session) forget(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[string(c.ID)] == c {
		delete(s.calls, string(c.ID))
	}
}

// seen records an arriving frame before anything is done about it.
func (s *session) seen(m Message, h http.Header) {
	s.in.record(Record{Kind: In, Conn: s.label, Frame: m.Raw, Method: m.Method, ID: m.ID, Header: h})
}

// request makes the call of a request, nil for other messages. It comes before the message is recorded: who waits for the
// record may cancel the request at once.
func (s *session) request(parent context.Context, m Message, h http.Header) *Call {
	if m.kind() != messageRequest {
		return nil
	}
	return s.newCall(parent, m, h)
}

// newCall makes the call of a request or a notification; parent ends it.
func (s *session) newCall(parent context.Context, m Message, h http.Header) *Call {
	ctx, cancel := context.WithCancelCause(parent)
	c := &Call{Message: m, Header: h, session: s, ctx: ctx, cancel: cancel}
	if m.kind() == messageRequest {
		s.mu.Lock()
		s.calls[string(m.ID)] = c
		s.requests++
		s.mu.Unlock()
	}
	return c
}

// take deals with what is not a request: answers, cancels, other notifications.
func (s *session) take(m Message, h http.Header) {
	switch m.kind() {
	case messageResponse:
		s.answered(m)
	case messageNotice:
		if m.Method == "notifications/cancelled" {
			s.cancelled(m)
		}
		s.newCall(s.in.ctx, m, h).run()
	}
}

func (s *session) answered(m Message) {
	s.mu.Lock()
	ch := s.asks[string(m.ID)]
	delete(s.asks, string(m.ID))
	s.mu.Unlock()
	if ch != nil {
		ch <- m.Raw
	}
}

func (s *session) cancelled(m Message) {
	id := m.Params.At("requestId")
	s.mu.Lock()
	c := s.calls[string(id)]
	s.mu.Unlock()
	if c != nil {
		c.end(fmt.Errorf("%w: %s", ErrCancelled, m.Params.At("reason").Str()))
	}
}

// close ends every call of the session.
func (s *session) close(cause error) {
	s.mu.Lock()
	calls := make([]*Call, 0, len(s.calls))
	for _, c := range s.calls {
		calls = append(calls, c)
	}
	s.mu.Unlock()
	for _, c := range calls {
		c.end(cause)
	}
	s.in.dropSession(s)
}

// ask sends a request to the client and waits for the raw answer.
func (s *session) ask(ctx context.Context, method, params string, rel *Call) (Raw, error) {
	s.mu.Lock()
	s.lastAsk++
	id := fmt.Sprintf(`"ask-%d"`, s.lastAsk)
	ch := make(chan Raw, 1)
	s.asks[id] = ch
	s.mu.Unlock()
	s.write([]byte(frameOf(id, method, params)), rel)
	select {
	case answer := <-ch:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
