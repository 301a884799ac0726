package proxy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// watching counts who wants to hear of updates of which resource of which upstream: the upstream is asked once for all,
// and told when the last one has lost interest.
type watching struct {
	mu   sync.Mutex
	subs map[watchKey]map[*Subscriptions]string // → the URI that each knows it by
}

type watchKey struct {
	up  *upstream.Upstream
	uri string // the upstream's own
}

// Subscriptions are the resources that one client has subscribed to. They are safe for concurrent use.
type Subscriptions struct {
	p      *Proxy
	notify func(uri string)

	mu     sync.Mutex
	held   map[string]watchKey
	closed bool
}

// maxSubscriptions bounds the resources that one client may watch.
const maxSubscriptions = 1000

// NewSubscriptions makes the subscriptions of one client. notify is told the URI, as the client knows it, of a resource
// that has been updated; it must not block.
func (p *Proxy) NewSubscriptions(notify func(uri string)) *Subscriptions {
	return &Subscriptions{p: p, notify: notify, held: map[string]watchKey{}}
}

// Add subscribes to a resource. It fails where nobody has it or its owner knows no subscriptions; an error answer of the
// upstream is given as a frame.
func (s *Subscriptions) Add(ctx context.Context, c *Caller, uri string) (refusal *wire.Frame, ok bool) {
	it := s.p.resolveURI(c, uri)
	if it == nil {
		return nil, false
	}
	if peer := it.Upstream.Peer(); peer == nil || !peer.Has("resources", "subscribe") {
		return nil, false
	}
	key := watchKey{it.Upstream, it.Wire}
	s.mu.Lock()
	if s.closed || len(s.held) >= maxSubscriptions {
		s.mu.Unlock()
		return nil, false
	}
	_, had := s.held[uri]
	s.held[uri] = key
	s.mu.Unlock()
	if had || !s.p.watching.add(key, s, uri) {
		return nil, true
	}
	if f := s.p.tellUpstream(ctx, key, "resources/subscribe"); f != nil && f.Kind == wire.KindError {
		s.Remove(uri)
		return f, true
	}
	return nil, true
}

// Remove ends a subscription; false where there was none.
func (s *Subscriptions) Remove(uri string) bool {
	s.mu.Lock()
	key, had := s.held[uri]
	delete(s.held, uri)
	s.mu.Unlock()
	if had && s.p.watching.remove(key, s) {
		s.p.unwatch(key)
	}
	return had
}

// Close ends all subscriptions.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	s.closed = true
	uris := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	for _, uri := range uris {
		s.Remove(uri)
	}
}

// add notes a subscriber; true for the first of a resource.
func (w *watching) add(key watchKey, s *Subscriptions, uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := len(w.subs[key]) == 0
	if first {
		w.subs[key] = map[*Subscriptions]string{}
	}
	w.subs[key][s] = uri
	w.publish(key.up)
	return first
}

// remove forgets a subscriber; true for the last of a resource.
func (w *watching) remove(key watchKey, s *Subscriptions) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.subs[key][s]; !ok {
		return false
	}
	delete(w.subs[key], s)
	if len(w.subs[key]) > 0 {
		return false
	}
	delete(w.subs, key)
	w.publish(key.up)
	return true
}

// publish tells the upstream's connections what is watched. w.mu is held, so that the newest is told last.
func (w *watching) publish(u *upstream.Upstream) {
	var uris []string
	for k := range w.subs {
		if k.up == u {
			uris = append(uris, k.uri)
		}
	}
	slices.Sort(uris)
	u.Watch(uris)
}

// updated tells the subscribers of a resource, and of those it is a part of (2025-11-25, server/resources: the URI may be
// of a sub-resource).
func (p *Proxy) updated(u *upstream.Upstream, uri string) {
	type told struct {
		s   *Subscriptions
		uri string
	}
	var all []told
	p.watching.mu.Lock()
	for k, subs := range p.watching.subs {
		if k.up != u || k.uri != uri && !strings.HasPrefix(uri, strings.TrimSuffix(k.uri, "/")+"/") {
			continue
		}
		for s, exposed := range subs {
			if k.uri != uri {
				exposed += strings.TrimPrefix(uri, k.uri)
			}
			all = append(all, told{s, exposed})
		}
	}
	p.watching.mu.Unlock()
	for _, t := range all {
		t.s.notify(t.uri)
	}
}

// subscribeTimeout bounds what is asked of an upstream for a subscription.
const subscribeTimeout = 10 * time.Second

// tellUpstream asks a legacy upstream for a subscription on the connection that everybody shares, and gives its answer;
// nil where there was none. A modern one hears of it by its listening.
func (p *Proxy) tellUpstream(ctx context.Context, key watchKey, method string) *wire.Frame {
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	lease, err := key.up.AcquireShared(ctx)
	if err != nil {
		return nil
	}
	defer lease.Release()
	if lease.Peer().Era == wire.Modern {
		return nil
	}
	f, err := ask(ctx, key.up, lease, method, append(wire.AppendString([]byte(`{"uri":`), key.uri), '}'))
	if err != nil {
		return nil
	}
	return f
}

// unwatch tells a legacy upstream that the last subscriber has gone, off everybody's path.
func (p *Proxy) unwatch(key watchKey) {
	p.background.Go(func() { p.tellUpstream(context.Background(), key, "resources/unsubscribe") })
}

// ask sends a request of our own on a lease and waits for its answer.
func ask(ctx context.Context, u *upstream.Upstream, lease *upstream.Lease, method string, params []byte) (*wire.Frame, error) {
	id := u.NextID()
	b := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), id)
	b = append(append(append(b, `,"method":"`+method+`","params":`...), params...), '}')
	x, err := lease.Start(ctx, &upstream.Outgoing{ID: id, Method: method, Frame: b})
	if err != nil {
		return nil, err
	}
	for {
		f, err := x.Next(ctx)
		if err != nil {
			x.Close(true)
			if ctx.Err() != nil {
				lease.Cancel(id, "")
			}
			return nil, err
		}
		switch f.Kind {
		case wire.KindResponse, wire.KindError:
			x.Close(false)
			return f, nil
		case wire.KindRequest:
			lease.Refuse(x, f)
		}
	}
}

// subscription answers resources/subscribe and resources/unsubscribe of a legacy client.
func (c *call) subscription() (Answer, Outcome) {
	f := c.req.Frame
	uri, ok := wire.DecodeString(f.Body.Get(f.Raw, "uri").Of(f.Raw))
	if !ok {
		return Failure(c.rawID(), wire.CodeInvalidParams, f.Method+": params.uri must be a string", nil), Invalid
	}
	if f.Method == "resources/unsubscribe" {
		c.req.Subscriptions.Remove(uri)
		return Result(c.rawID(), []byte("{}")), OK
	}
	c.p.settle(c.ctx)
	refusal, ok := c.req.Subscriptions.Add(c.ctx, c.req.Caller, uri)
	switch {
	case !ok:
		return Failure(c.rawID(), wire.CodeResourceNotFound, "no server offers updates of the resource: "+uri, resourceData(uri)), Invalid
	case refusal != nil:
		return Whole(withID(refusal, c.rawID())), RPCError
	}
	return Result(c.rawID(), []byte("{}")), OK
}

// withID is a frame with another id.
func withID(f *wire.Frame, id []byte) []byte {
	var p wire.Patch
	p.Reset(f.Raw)
	p.Replace(f.ID, id)
	return p.Append(nil)
}

// resourceData is the data of an error about a resource.
func resourceData(uri string) []byte { return append(wire.AppendString([]byte(`{"uri":`), uri), '}') }
