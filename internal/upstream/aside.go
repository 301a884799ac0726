package upstream

import (
	"context"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// maxAsides bounds the questions that one connection may have open outside of its calls.
const maxAsides = 16

// asides brings what a server says outside of any call, on a connection that belongs to one session, to that session:
// nobody else can be meant.
type asides struct {
	s      *slot
	ctx    context.Context
	cancel context.CancelFunc
	runs   group
}

func newAsides(ctx context.Context, s *slot) *asides {
	a := &asides{s: s}
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
}

// end takes all questions back and waits for them.
func (a *asides) end() {
	a.cancel()
	a.runs.Stop()
}

// request takes on a request of the server, which reply then answers; false where it cannot be brought to anybody. It
// does not block.
func (a *asides) request(f *wire.Frame, reply func(frame []byte)) bool {
	if a == nil {
		return false
	}
	unit := a.s.session()
	return unit != "" && a.runs.atMost(maxAsides, func() {
		answer, ok := a.s.u.opts.Observer.Asked(a.ctx, a.s.u, unit, f)
		if !ok {
			a.s.Refused(f, false)
			answer = Refusal(f)
		}
		reply(answer)
	})
}

// Aside takes on a question whose call has ended before it was answered: on the connection of a session it need not have
// been the call's. False where it can be brought to nobody.
func (l *Lease) Aside(x Exchange, f *wire.Frame) bool {
	l.s.u.mu.Lock()
	a := l.s.asides
	l.s.u.mu.Unlock()
	return a.request(f, func(frame []byte) { l.Reply(x, frame) })
}

// session is the session whose connection this is; empty for none.
func (s *slot) session() string {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	if s.unit == "" || !s.ends || s.u.opts.Observer == nil {
		return ""
	}
	return s.owner
}

// rootsChanged is what a client says whose roots are others now.
const rootsChanged = "notifications/roots/list_changed"

// RootsChanged tells the server, on the connection of that session, that the client's roots have changed. Everybody's
// connections are not told: the server would ask for the roots outside of any call, and nobody could tell of whom.
func (u *Upstream) RootsChanged(session string) {
	u.mu.Lock()
	var c conn
	for _, s := range u.keyed {
		if s.owner == session && s.ends && s.peer != nil && s.peer.Era == wire.Legacy {
			c = s.conn
		}
	}
	u.mu.Unlock()
	if c == nil {
		return
	}
	u.off.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		_ = c.Notify(ctx, []byte(`{"jsonrpc":"2.0","method":"`+rootsChanged+`"}`))
	})
}
