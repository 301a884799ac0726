package upstream

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Watch sets the resources whose updates are to be heard, by the upstream's own URIs. A modern server hears of a change
// at once. A legacy one is told by whoever subscribes; here they are kept to be restored on the next connection.
func (u *Upstream) Watch(uris []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if slices.Equal(u.watched, uris) {
		return
	}
	u.watched = slices.Clone(uris)
	u.heard(len(uris))
	close(u.rewatch)
	u.rewatch = make(chan struct{})
}

// AwaitWatch waits until a modern server has taken or refused what Watch was told last, or ctx ends: what it announces
// before that is not heard.
func (u *Upstream) AwaitWatch(ctx context.Context) {
	for {
		u.mu.Lock()
		told, changed := u.listening == u.rewatch, u.changed
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

// AcquireFirst gives the connection that tells of updates: the one that watched resources are restored on.
func (u *Upstream) AcquireFirst(ctx context.Context) (*Lease, error) {
	return u.acquire(ctx, u.shared[0], false)
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
	watched, level := slices.Clone(s.u.watched), s.u.logLevel
	s.u.mu.Unlock()
	if level != "" {
		s.sendLevel(c, peer, level)
	}
	if s.unit != "" || s.index != 0 || !peer.Has("resources", "subscribe") {
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
				s.u.log.Info("the server refuses a request of the proxy", zap.String("method", method), zap.ByteString("error", f.Error.Of(f.Raw)))
				return
			case f.Kind == wire.KindResponse:
				return
			}
		}
	})
}
