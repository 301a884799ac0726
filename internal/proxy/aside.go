package proxy

import (
	"context"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// What an upstream says outside of any call. On a connection that belongs to one session it can only be meant for that
// session's client, and is brought to it on its standing stream; on any other it is meant for nobody in particular.

// AsideFinder gives the client of a session, and where what belongs to none of its requests is brought to it; nil where
// the session is not there.
type AsideFinder func(session string) (*Caller, Sink)

// OnAside sets what finds the client of a session. It is called before Start, and must not block.
func (p *Proxy) OnAside(find AsideFinder) {
	p.catalog.onAsked = func(ctx context.Context, u *upstream.Upstream, session string, f *wire.Frame) ([]byte, bool) {
		caller, sink := find(session)
		if caller == nil {
			return nil, false
		}
		q := &questioner{p: p, u: u, era: wire.Legacy, caller: caller, sink: sink}
		if !q.can(f.Method, f.Raw, f.Body) {
			return nil, false
		}
		answer, _ := q.relay(ctx, f)
		return answer, true
	}
	p.catalog.onVisited = func(from source, f *wire.Frame) { p.visited(from, f, find) }
	p.catalog.onSaid = func(u *upstream.Upstream, session string, f *wire.Frame) {
		caller, sink := find(session)
		switch {
		case caller != nil && f.Method == methodVisited,
			caller != nil && f.Method == "notifications/message" && passesLevel(f, caller.LogLevel):
			sink.Notify(f.Raw)
		default:
			p.count.Drop(count.DropNotification)
		}
	}
}

// visited brings the news that a page has been visited, which came on a connection that several share, to the session
// that was sent there.
func (p *Proxy) visited(from source, f *wire.Frame, find AsideFinder) {
	if _, sink := find(p.visits.of(from, elicitationOf(f))); sink != nil {
		sink.Notify(f.Raw)
		return
	}
	p.count.Drop(count.DropNotification)
}

// RootsChanged tells the upstreams that the roots of this client have changed, on the connections that are its own.
func (p *Proxy) RootsChanged(c *Caller) {
	if c.Caps&CapRoots == 0 || c.Unit == "" {
		return
	}
	for _, u := range p.ups.All() {
		u.RootsChanged(c.Unit)
	}
}
