package session

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// maxLetters bounds what waits for a standing stream of one session.
	maxLetters = 32
	// streamPatience is how long a question waits for a standing stream to go out on: servers may ask as soon as they have
	// been told that the client is there, and clients open the stream a moment later.
	streamPatience = 5 * time.Second
)

// letter is a frame for a client that belongs to none of its requests.
type letter struct {
	frame []byte
	sent  chan struct{} // closed when it has been written
}

// mail is what waits for the standing stream of a session. It is safe for concurrent use.
type mail struct {
	mu     sync.Mutex
	queue  []*letter
	signal chan struct{} // holds one token while there is something
}

func newMail() *mail { return &mail{signal: make(chan struct{}, 1)} }

// post adds a letter; nil where too many wait.
func (m *mail) post(frame []byte) *letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) >= maxLetters {
		return nil
	}
	l := &letter{frame: append([]byte(nil), frame...), sent: make(chan struct{})}
	m.queue = append(m.queue, l)
	m.wake()
	return l
}

func (m *mail) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// next gives the first letter, which stays the first until it is sent; nil for none.
func (m *mail) next() *letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return nil
	}
	return m.queue[0]
}

// done notes that a letter has been written.
func (m *mail) done(l *letter) {
	if m.withdraw(l) {
		close(l.sent)
	}
}

// withdraw takes a letter away; false where it has gone already.
func (m *mail) withdraw(l *letter) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range m.queue {
		if o == l {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			return true
		}
	}
	return false
}

// aside is the client of a session as far as nothing belongs to one of its requests: what is said to it goes out on its
// standing stream. It is a [proxy.Sink].
type aside struct {
	m *Manager
	s *session
}

// Notify implements proxy.Sink.
func (a aside) Notify(frame []byte) {
	if a.s.mail.post(frame) == nil {
		a.m.count.Drop(count.DropNotification)
	}
}

// Ask implements proxy.Sink.
func (a aside) Ask(ctx context.Context, method string, params []byte) (*wire.Frame, error) {
	return a.s.questions.ask(ctx, method, params, a.m.limits, func(frame []byte) bool { return a.send(ctx, frame) })
}

// send waits until a frame has gone out; false where there is no stream for it. Once ctx has ended nobody waits.
func (a aside) send(ctx context.Context, frame []byte) bool {
	l := a.s.mail.post(frame)
	if l == nil {
		a.m.count.Drop(count.DropNotification)
		return false
	}
	if ctx.Err() != nil {
		return true
	}
	t := time.NewTimer(streamPatience)
	defer t.Stop()
	select {
	case <-l.sent:
		return true
	case <-t.C:
	case <-ctx.Done():
	case <-a.s.ended:
	}
	return !a.s.mail.withdraw(l)
}

// party is somebody who can be told what belongs to none of its requests.
type party struct {
	caller func() *proxy.Caller
	sink   proxy.Sink
}

// party finds the client that connections of its own at upstreams are known by that name.
func (m *Manager) party(unit string) (*proxy.Caller, proxy.Sink) {
	m.mu.Lock()
	p, ok := m.parties[unit]
	m.mu.Unlock()
	if !ok {
		return nil, nil
	}
	return p.caller(), p.sink
}

// join makes a conversation over stdio one that can be found.
func (m *Manager) join(unit string, p party) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parties[unit] = p
}

// part undoes join.
func (m *Manager) part(unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.parties, unit)
}

// stdioAside is the legacy client of a conversation over stdio, where all goes out on one channel. It is a [proxy.Sink].
type stdioAside struct{ c *stdio }

// Notify implements proxy.Sink.
func (a stdioAside) Notify(frame []byte) { a.c.write(frame) }

// Ask implements proxy.Sink.
func (a stdioAside) Ask(ctx context.Context, method string, params []byte) (*wire.Frame, error) {
	return a.c.questions.ask(ctx, method, params, a.c.m.limits, func(frame []byte) bool { return a.c.write(frame) })
}
