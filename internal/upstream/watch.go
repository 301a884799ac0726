package upstream

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// wishes are what is to be heard on one connection. They are guarded by the upstream's mutex.
type wishes struct {
	watched, tasks []string
	rewatch        chan struct{}   // closed and replaced when they change
	listening      <-chan struct{} // the rewatch that a modern server has been told up to
}

func newWishes() *wishes { return &wishes{rewatch: make(chan struct{})} }

func (w *wishes) none() bool { return len(w.watched)+len(w.tasks) == 0 }

// change tells those who listen that the wishes are others now.
func (w *wishes) change() {
	close(w.rewatch)
	w.rewatch = make(chan struct{})
}

// wishesFor gives the wishes for these credentials; those for everybody where there are none. u.mu is held.
func (u *Upstream) wishesFor(c *Credentials) *wishes {
	key := c.slotKey()
	if key == "" || u.isPipe() {
		return u.wishes
	}
	w := u.wishesOf[key]
	if w == nil {
		w = newWishes()
		u.wishesOf[key] = w
	}
	return w
}

// forgetWishes drops the wishes of a connection that there is no more, unless there are any. u.mu is held.
func (u *Upstream) forgetWishes(key string) {
	if w := u.wishesOf[key]; w != nil && w.none() && u.keyed[key] == nil {
		delete(u.wishesOf, key)
	}
}

// wishes gives what is to be heard on this connection; nil where nothing is heard on it. u.mu is held.
func (s *slot) wishes() *wishes {
	switch {
	case s.unit == "" && s.index == 0:
		return s.u.wishes
	case s.lists():
		return s.u.wishesFor(s.creds)
	}
	return nil
}

// Watch sets the resources whose updates are to be heard for these credentials, nil for everybody, by the upstream's own
// URIs. A modern server hears of a change at once. A legacy one is told by whoever subscribes; here they are kept to be
// restored on the next connection.
func (u *Upstream) Watch(c *Credentials, uris []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.wishesFor(c)
	if slices.Equal(w.watched, uris) {
		return
	}
	w.watched = slices.Clone(uris)
	if w == u.wishes {
		u.heard(len(uris))
	} else if s := u.keyed[c.slotKey()]; s != nil {
		s.lastUse = time.Now()
	}
	w.change()
	u.forgetWishes(c.slotKey())
}

// AwaitWatch waits until a modern server has taken or refused what Watch was told last, or ctx ends: what it announces
// before that is not heard.
func (u *Upstream) AwaitWatch(ctx context.Context, c *Credentials) {
	for {
		u.mu.Lock()
		w := u.wishesFor(c)
		told, changed := w.listening == w.rewatch, u.changed
		u.mu.Unlock()
		if told {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// SetLogLevel sets the least level of log messages that anybody wants of this upstream; empty for none. Servers that
// declare logging are told, those that come later too.
func (u *Upstream) SetLogLevel(level string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.logLevel == level || level == "" {
		return
	}
	u.logLevel = level
	for _, s := range u.slots() {
		if s.conn != nil {
			s.sendLevel(s.conn, s.peer, level)
		}
	}
}

// AcquireFirst gives the connection that tells of updates for these credentials, nil for everybody: the one that watched
// resources are restored on.
func (u *Upstream) AcquireFirst(ctx context.Context, c *Credentials) (*Lease, error) {
	return u.acquireFirst(ctx, Unit{Credentials: c})
}

func (u *Upstream) acquireFirst(ctx context.Context, unit Unit) (*Lease, error) {
	c := u.binding(unit)
	if c == nil {
		return u.acquire(ctx, u.shared[0], false)
	}
	s, err := u.keyedSlot(c.slotKey(), Unit{Credentials: c, Principal: unit.Principal})
	if err != nil {
		return nil, err
	}
	return u.acquire(ctx, s, false)
}

// slots gives all slots. u.mu is held.
func (u *Upstream) slots() []*slot {
	all := slices.Clone(u.shared)
	for _, s := range u.keyed {
		all = append(all, s)
	}
	return all
}

// restore tells a new connection of a legacy server what the one before knew.
func (s *slot) restore(c conn, peer *Peer) {
	if peer.Era != wire.Legacy {
		return
	}
	s.u.mu.Lock()
	var watched []string
	w, level := s.wishes(), s.u.logLevel
	if w != nil {
		watched = slices.Clone(w.watched)
	}
	s.u.mu.Unlock()
	if level != "" {
		s.sendLevel(c, peer, level)
	}
	if !peer.Has("resources", "subscribe") {
		return
	}
	for _, uri := range watched {
		s.request(c, "resources/subscribe", append(wire.AppendString([]byte(`{"uri":`), uri), '}'))
	}
}

func (s *slot) sendLevel(c conn, peer *Peer, level string) {
	if peer.Era == wire.Legacy && peer.Has("logging") {
		s.request(c, "logging/setLevel", append(wire.AppendString([]byte(`{"level":`), level), '}'))
	}
}

// request sends a request of our own off everybody's path; nobody waits for its answer.
func (s *slot) request(c conn, method string, params []byte) {
	s.u.off.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		id := s.u.NextID()
		frame := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), id)
		frame = append(append(append(frame, `,"method":"`+method+`","params":`...), params...), '}')
		x, err := c.Start(ctx, &Outgoing{ID: id, Method: method, Frame: frame})
		if err != nil {
			return
		}
		defer x.Close(false)
		for {
			f, err := x.Next(ctx)
			switch {
			case err != nil:
				return
			case f.Kind == wire.KindRequest:
				s.Refused(f, false)
				_ = x.Respond(ctx, Refusal(f))
			case f.Kind == wire.KindError:
				s.u.log.Info("the server refuses a request of the proxy", zap.String("method", method), zap.String("error", s.mask().text(string(f.Error.Of(f.Raw)))))
				return
			case f.Kind == wire.KindResponse:
				return
			}
		}
	})
}
