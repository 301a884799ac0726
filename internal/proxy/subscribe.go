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
	mu sync.Mutex
	of map[source]map[string]*watch // by the upstream's own URI
}

// source is a connection that tells of updates: everybody's of an upstream, or that of one set of credentials.
type source struct {
	up    *upstream.Upstream
	creds string // their key; empty for everybody's
}

// watch is one resource that is watched, or was until a moment ago.
type watch struct {
	from  source                // guarded by watching.mu
	creds *upstream.Credentials // of the source; nil for everybody's
	uri   string                // the upstream's own
	// turn holds one token: the right to tell the upstream. Without it, the end of a subscription could overtake the
	// beginning of the next.
	turn chan struct{}
	told bool // the upstream has been asked; guarded by turn

	subs map[subscriber]struct{} // guarded by watching.mu
}

// subscriber is one client by one URI that it knows the resource by.
type subscriber struct {
	s   *Subscriptions
	uri string
}

// Subscriptions are the resources that one client has subscribed to. They are safe for concurrent use.
type Subscriptions struct {
	p      *Proxy
	notify func(uri string)
	// tellTask is told of tasks; nil where nobody wants to hear of them.
	tellTask func(TaskNews)

	mu    sync.Mutex
	lists ownLists
	held  map[string]*watch
	// may says whether the client may hear of a URI of a resource's upstream; by the URI that it watches.
	may    map[string]func(uri string) bool
	tasks  map[taskKeyOf]heardTask
	closed bool
}

// maxSubscriptions bounds the resources that one client may watch.
const maxSubscriptions = 1000

// NewSubscriptions makes the subscriptions of one client. notify is told the URI, as the client knows it, of a resource
// that has been updated; it must not block.
func (p *Proxy) NewSubscriptions(notify func(uri string)) *Subscriptions {
	return &Subscriptions{p: p, notify: notify, held: map[string]*watch{}, may: map[string]func(string) bool{}}
}

// Add subscribes to a resource. It fails where nobody has it or its owner knows no subscriptions; an error answer of the
// upstream is given as a frame. When ctx ends first, nothing is subscribed to.
func (s *Subscriptions) Add(ctx context.Context, c *Caller, uri string) (refusal *wire.Frame, ok bool) {
	if c = s.p.personal(c); len(c.own) > 0 {
		s.p.overlays.await(ctx, c, false)
	}
	it := s.p.resolveURI(c, uri)
	if it == nil {
		return nil, false
	}
	creds := it.Upstream.Bound(c.Headers)
	if peer := s.p.peerFor(ctx, it.Upstream, c, creds); peer == nil || !peer.Has("resources", "subscribe") {
		return nil, false
	}
	w, ok := s.hold(it, uri, creds, s.p.permitted(c.View, it.Upstream.ID))
	if w == nil {
		return nil, ok
	}
	told := make(chan *wire.Frame, 1)
	s.p.background.Go(func() { told <- s.p.tell(w) })
	select {
	case refusal = <-told:
		if refusal != nil {
			s.Remove(uri)
		}
	case <-ctx.Done():
		s.Remove(uri)
	}
	return refusal, true
}

// peerFor is what the server told these credentials of itself.
func (p *Proxy) peerFor(ctx context.Context, u *upstream.Upstream, c *Caller, creds *upstream.Credentials) *upstream.Peer {
	if creds == nil {
		return u.Peer()
	}
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	lease, err := u.AcquireList(ctx, upstream.Unit{Principal: c.Principal, Credentials: creds})
	if err != nil {
		return nil
	}
	defer lease.Release()
	return lease.Peer()
}

// hold notes a subscription; no watch where there is nothing more to do, or nothing can be done.
func (s *Subscriptions) hold(it *Item, uri string, creds *upstream.Credentials, may func(string) bool) (w *watch, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.held[uri] != nil:
		return nil, true
	case s.closed || len(s.held) >= maxSubscriptions:
		return nil, false
	}
	w = s.p.watching.add(it.Upstream, creds, it.Wire, subscriber{s, uri})
	s.held[uri], s.may[uri] = w, may
	return w, true
}

// Remove ends a subscription; false where there was none.
func (s *Subscriptions) Remove(uri string) bool {
	s.mu.Lock()
	w := s.held[uri]
	delete(s.held, uri)
	delete(s.may, uri)
	last := w != nil && s.p.watching.remove(w, subscriber{s, uri})
	s.mu.Unlock()
	if last {
		s.p.background.Go(func() { s.p.tell(w) }) // off everybody's path
	}
	return w != nil
}

// Close ends all subscriptions.
func (s *Subscriptions) Close() {
	s.mu.Lock()
	s.closed = true
	uris := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	s.dropTasks()
	s.p.overlays.deafen(s)
	for _, uri := range uris {
		s.Remove(uri)
	}
}

// add notes a subscriber.
func (w *watching) add(u *upstream.Upstream, creds *upstream.Credentials, uri string, who subscriber) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := source{up: u, creds: keyOf(creds)}
	of := w.of[from]
	if of == nil {
		of = map[string]*watch{}
		w.of[from] = of
	}
	one := of[uri]
	if one == nil {
		one = &watch{from: from, creds: creds, uri: uri, turn: make(chan struct{}, 1), subs: map[subscriber]struct{}{}}
		one.turn <- struct{}{}
		of[uri] = one
	}
	one.subs[who] = struct{}{}
	w.publish(from)
	return one
}

// remove forgets a subscriber; true for the last of a resource.
func (w *watching) remove(one *watch, who subscriber) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(one.subs, who)
	if len(one.subs) > 0 {
		return false
	}
	w.publish(one.from)
	return true
}

// wanted says whether anybody watches a resource.
func (w *watching) wanted(one *watch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(one.subs) > 0
}

// owner gives the upstream that has a resource; a reload may put another in its place.
func (w *watching) owner(one *watch) *upstream.Upstream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return one.from.up
}

// forget drops a watch that nobody wants and the upstream knows nothing of. The caller has its turn.
func (w *watching) forget(one *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(one.subs) > 0 || one.told || w.of[one.from][one.uri] != one {
		return
	}
	if delete(w.of[one.from], one.uri); len(w.of[one.from]) == 0 {
		delete(w.of, one.from)
	}
}

// publish tells a connection what is watched. w.mu is held, so that the newest is told last.
func (w *watching) publish(from source) {
	var uris []string
	var creds *upstream.Credentials
	for uri, one := range w.of[from] {
		creds = one.creds
		if len(one.subs) > 0 {
			uris = append(uris, uri)
		}
	}
	slices.Sort(uris)
	from.up.Watch(creds, uris)
}

// updated tells the subscribers of a resource, and of those it is a part of (2025-11-25, server/resources: the URI may be
// of a sub-resource).
func (p *Proxy) updated(from source, uri string) {
	var told []update
	p.watching.mu.Lock()
	for watched, one := range p.watching.of[from] {
		if watched != uri && !strings.HasPrefix(uri, strings.TrimSuffix(watched, "/")+"/") {
			continue
		}
		for who := range one.subs {
			told = append(told, update{who, who.uri + strings.TrimPrefix(uri, watched)})
		}
	}
	p.watching.mu.Unlock()
	for _, one := range told {
		if one.to.hears(uri) {
			one.to.s.notify(one.uri)
		}
	}
}

// update is what one subscriber is told of.
type update struct {
	to  subscriber
	uri string
}

// hears says whether a subscriber may know of a URI of the upstream: a part of what it watches may be hidden from it.
func (who subscriber) hears(uri string) bool {
	who.s.mu.Lock()
	may := who.s.may[who.uri]
	who.s.mu.Unlock()
	return may != nil && may(uri)
}

// permitted judges URIs of an upstream for those of a view, by the policies of the moment.
func (p *Proxy) permitted(viewKey, up string) func(uri string) bool {
	return func(uri string) bool {
		u := p.ups.Get(up)
		return u != nil && p.view(&Caller{View: viewKey}).permits(u.Config(), uri)
	}
}

// subscribeTimeout bounds what is asked of an upstream for a subscription.
const subscribeTimeout = 10 * time.Second

// tell brings what a legacy upstream has been asked for in line with what is wanted now. Where it refuses, its answer is
// given. One that cannot be reached hears of it with its next connection, a modern one by its listening.
func (p *Proxy) tell(w *watch) *wire.Frame {
	<-w.turn
	defer func() {
		p.watching.forget(w)
		w.turn <- struct{}{}
	}()
	wanted := p.watching.wanted(w)
	if wanted == w.told {
		return nil
	}
	method := "resources/subscribe"
	if !wanted {
		method = "resources/unsubscribe"
	}
	w.told = wanted
	f := p.tellUpstream(w, method)
	if f == nil || f.Kind != wire.KindError {
		return nil
	}
	w.told = false
	if !wanted {
		return nil
	}
	return f
}

// tellUpstream sends a legacy upstream a request about a subscription, on the connection that its news come from, and
// gives its answer; nil where there was none. A modern one listens by now to what is subscribed to.
func (p *Proxy) tellUpstream(w *watch, method string) *wire.Frame {
	ctx, cancel := context.WithTimeout(p.base, subscribeTimeout)
	defer cancel()
	up := p.watching.owner(w)
	lease, err := up.AcquireFirst(ctx, w.creds)
	if err != nil {
		return nil
	}
	defer lease.Release()
	if lease.Peer().Era == wire.Modern {
		if method == "resources/subscribe" {
			up.AwaitWatch(ctx, w.creds)
		}
		return nil
	}
	f, err := ask(ctx, up, lease, method, append(wire.AppendString([]byte(`{"uri":`), w.uri), '}'))
	if err != nil {
		return nil
	}
	return f
}

// ask makes a request of our own, sends it on a lease and waits for its answer.
func ask(ctx context.Context, u *upstream.Upstream, lease *upstream.Lease, method string, params []byte) (*wire.Frame, error) {
	id := u.NextID()
	b := wire.AppendUpstreamID([]byte(`{"jsonrpc":"2.0","id":`), id)
	b = append(append(append(b, `,"method":"`+method+`","params":`...), params...), '}')
	return answered(ctx, lease, &upstream.Outgoing{ID: id, Method: method, Frame: b})
}

// answered sends a request of our own on a lease and waits for its answer. Requests of the server that come with it are
// refused.
func answered(ctx context.Context, lease *upstream.Lease, out *upstream.Outgoing) (*wire.Frame, error) {
	x, err := lease.Start(ctx, out)
	if err != nil {
		return nil, err
	}
	for {
		f, err := x.Next(ctx)
		if err != nil {
			x.Close(true)
			if ctx.Err() != nil {
				lease.Cancel(out.ID, "")
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
