package proxy

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// Some upstreams offer each caller something else. What they offer one is an overlay: it takes the place of what they
// offer everybody, in the view of that caller alone. Overlays are fetched when their caller lists or calls, over the
// caller's own connection, and forgotten when nobody has used them for a while.

const (
	// overlayGrace is how long a caller waits for an overlay. One that comes later is announced to it.
	overlayGrace = 5 * time.Second
	// overlayFresh is the age from which an overlay is looked at again when it is listed.
	overlayFresh = time.Minute
	// overlayRetry is when one that could not be fetched is looked at again.
	overlayRetry = 5 * time.Second
	// overlayIdle is how long one is kept that nobody uses.
	overlayIdle = 15 * time.Minute
	// maxOverlays and maxOverlayBytes bound all of them together; what was not used for longest goes first.
	maxOverlays     = 1000
	maxOverlayBytes = 128 << 20
)

// overlay is what one upstream offers one caller. Its fields are guarded by overlays.mu.
type overlay struct {
	key     overlayKey
	unit    upstream.Unit // whose connection lists
	session bool          // it is the session's own connection

	listing  *listing // nil while nothing is known
	err      error    // why the last look failed
	bytes    int      // of the listing
	looked   time.Time
	lastUse  time.Time
	fetching chan struct{} // closed at the end of the look that is under way; nil where none is
	again    bool          // something has changed meanwhile
	gone     bool
	heard    map[*Subscriptions]struct{}
}

// overlays keeps them, and the views that are made with them.
type overlays struct {
	p *Proxy

	mu    sync.Mutex
	all   map[overlayKey]*overlay
	bytes int
	views map[string]*ownView
	heard map[*Subscriptions]*Caller // all that hear of any, with what they have listed
}

func newOverlays(p *Proxy) *overlays {
	return &overlays{p: p, all: map[overlayKey]*overlay{}, views: map[string]*ownView{}, heard: map[*Subscriptions]*Caller{}}
}

// await begins to fetch what is missing of a caller's overlays, and waits for it within the grace. refresh looks again at
// what is old, for the next time.
func (o *overlays) await(ctx context.Context, c *Caller, refresh bool) {
	var waits []<-chan struct{}
	for _, own := range c.own {
		if w := o.want(own, refresh); w != nil {
			waits = append(waits, w)
		}
	}
	if len(waits) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, overlayGrace)
	defer cancel()
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
}

// want notes a use of an overlay, and begins to fetch it where it is missing; nil where there is nothing to wait for.
func (o *overlays) want(own owned, refresh bool) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	e := o.all[own.key]
	if e == nil {
		if own.session {
			return nil // it begins with the session's connection
		}
		e = o.add(own, now)
	}
	e.lastUse, e.unit = now, own.unit
	age := now.Sub(e.looked)
	switch {
	case e.fetching != nil:
	case e.listing == nil && e.err == nil, e.err != nil && age > overlayRetry, refresh && age > overlayFresh:
		o.fetch(e)
	}
	if e.listing != nil {
		return nil
	}
	return e.fetching
}

// began begins the overlay of a session that has a connection of its own by now.
func (o *overlays) began(own owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[own.key] == nil {
		o.fetch(o.add(own, time.Now()))
	}
}

// add makes an entry, for which others may have to go. o.mu is held.
func (o *overlays) add(own owned, now time.Time) *overlay {
	for len(o.all) >= maxOverlays {
		o.p.count.Limit(count.LimitOverlays)
		o.dropOldest(nil)
	}
	e := &overlay{key: own.key, unit: own.unit, session: own.session, lastUse: now, heard: map[*Subscriptions]struct{}{}}
	o.all[own.key] = e
	for s, c := range o.heard {
		if mine, ok := c.ownOf(own.key.up); ok && mine.key == own.key {
			e.heard[s] = struct{}{} // it has listed already
		}
	}
	return e
}

// dropOldest forgets the entry that was not used for longest, but not this one. o.mu is held.
func (o *overlays) dropOldest(but *overlay) {
	var oldest *overlay
	for _, e := range o.all {
		if e != but && (oldest == nil || e.lastUse.Before(oldest.lastUse)) {
			oldest = e
		}
	}
	if oldest != nil {
		o.drop(oldest)
	}
}

// drop forgets an entry. o.mu is held.
func (o *overlays) drop(e *overlay) {
	e.gone = true
	o.bytes -= e.bytes
	delete(o.all, e.key)
}

// changed hears that what an upstream offers somebody may have changed.
func (o *overlays) changed(key overlayKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.all[key]
	switch {
	case e == nil:
	case e.fetching != nil:
		e.again = true
	default:
		o.fetch(e)
	}
}

// shared hears that an upstream announces a change on a connection that is everybody's. Where the credentials stand in
// each message, that is where it announces those of single callers too.
func (o *overlays) shared(u *upstream.Upstream) {
	if u.Config().URL != "" || u.Config().CatalogScope != config.ScopePrincipal {
		return
	}
	o.mu.Lock()
	var keys []overlayKey
	for key := range o.all {
		if key.up == u {
			keys = append(keys, key)
		}
	}
	o.mu.Unlock()
	for _, key := range keys {
		o.changed(key)
	}
}

// renewed hears that a connection was made anew. The look that it was made for is not repeated.
func (o *overlays) renewed(key overlayKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.all[key]; e != nil && e.fetching == nil {
		o.fetch(e)
	}
}

// ended hears that the connection of a session is gone, and what it offered with it.
func (o *overlays) ended(key overlayKey) {
	o.mu.Lock()
	e := o.all[key]
	if e == nil || !e.session {
		o.mu.Unlock()
		return
	}
	o.drop(e)
	heard := e.subscribers()
	o.mu.Unlock()
	o.tell(heard)
}

// fetch begins to look at the lists. o.mu is held.
func (o *overlays) fetch(e *overlay) {
	if o.p.base.Err() != nil {
		return
	}
	e.fetching, e.again = make(chan struct{}), false
	rest := refreshPause - time.Since(e.looked)
	o.p.background.Go(func() {
		sleep(o.p.base, max(0, rest)) // however often changes are announced
		o.finish(e, o.look)
	})
}

// look fetches the lists of an overlay.
func (o *overlays) look(e *overlay, unit upstream.Unit, before *listing) (*listing, error) {
	u := e.key.up
	ctx, cancel := context.WithTimeout(o.p.base, u.Config().ConnectTimeout+u.Config().CallTimeout)
	defer cancel()
	acquire := u.AcquireList
	if e.session {
		acquire = u.AcquireOwn
	}
	lease, err := acquire(ctx, unit)
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	l := &lister{u: u, lease: lease, log: o.p.log.With(zap.String("upstream", u.ID)), count: o.p.count, meta: forwardedMeta(u, unit.Credentials)}
	after := l.fetch(ctx, before)
	if upstream.ChallengeOf(after.partial) != nil {
		return nil, after.partial
	}
	return after, nil
}

// finish runs a look and takes over what it found.
func (o *overlays) finish(e *overlay, look func(*overlay, upstream.Unit, *listing) (*listing, error)) {
	o.mu.Lock()
	unit, before := e.unit, e.listing
	o.mu.Unlock()
	after, err := look(e, unit, before)
	o.mu.Lock()
	e.err, e.looked = err, time.Now()
	if err == nil && !e.gone {
		o.bytes += after.bytes() - e.bytes
		e.listing, e.bytes = after, after.bytes()
		for o.bytes > maxOverlayBytes && len(o.all) > 1 {
			o.p.count.Limit(count.LimitOverlays)
			o.dropOldest(e)
		}
	}
	close(e.fetching)
	e.fetching = nil
	if e.again && !e.gone && o.p.base.Err() == nil {
		o.fetch(e)
	}
	heard := e.subscribers()
	o.mu.Unlock()
	if err != nil && upstream.ChallengeOf(err) == nil && o.p.base.Err() == nil && !errors.Is(err, upstream.ErrNoOwn) {
		o.p.log.Info("the lists for a caller could not be fetched", zap.String("upstream", e.key.up.ID), zap.String("error", err.Error()))
	}
	o.tell(heard)
}

// failure tells why there is no overlay; nil where there is one.
func (o *overlays) failure(key overlayKey) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.all[key]; e != nil {
		return e.err
	}
	return nil
}

// counts gives how many overlays there are of each upstream.
func (o *overlays) counts() map[string]int {
	out := map[string]int{}
	for _, u := range o.p.set.Load().scoped {
		out[u.ID] = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.all {
		if _, scoped := out[key.up.ID]; scoped {
			out[key.up.ID]++
		}
	}
	return out
}

// sweep forgets what nobody uses any more, and what belongs to upstreams that are there no more.
func (o *overlays) sweep(now time.Time) {
	scoped := map[*upstream.Upstream]bool{}
	for _, u := range o.p.set.Load().scoped {
		scoped[u] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.all {
		// Those of sessions end with their connections.
		if !scoped[e.key.up] || !e.session && now.Sub(e.lastUse) > overlayIdle {
			o.drop(e)
		}
	}
	for key, v := range o.views {
		if now.Sub(v.lastUse) > overlayIdle {
			delete(o.views, key)
		}
	}
}

// run sweeps until ctx ends.
func (o *overlays) run(ctx context.Context) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			o.sweep(now)
		}
	}
}

// bytes is about what a listing takes.
func (l *listing) bytes() (n int) {
	for k := range kinds {
		for _, o := range l.offers[k] {
			n += len(o.raw) + len(o.fixed) + offerBytes
		}
	}
	return n
}

// offerBytes is about what an offer takes beside its text.
const offerBytes = 400
