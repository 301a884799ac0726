package proxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// refreshPause is the least time between two looks at the lists of one upstream: however often it announces
	// changes, and even if being looked at makes it announce one.
	refreshPause = time.Second
	// refreshDelay gathers announcements that come together.
	refreshDelay = 50 * time.Millisecond
	// refreshAgain is when a list that failed is looked at again.
	refreshAgain = 15 * time.Second
	// refreshUnheard is when lists are looked at again whose changes nobody tells of.
	refreshUnheard = 5 * time.Minute
)

// catalog keeps the snapshot up to date. One goroutine per upstream fetches its lists; a refresh merges all of them
// and puts the new snapshot in the place of the old one.
type catalog struct {
	log       *zap.Logger
	count     *count.Counters
	memory    Memory // nil keeps nothing
	merge     func(map[string]*listing) *snapshot
	onChange  func(view string, changed [kinds]bool)
	onInsist  func(view string, announced [kinds]bool)
	onUpdate  func(u *upstream.Upstream, uri string)
	onTask    func(u *upstream.Upstream, at upstream.Place, f *wire.Frame)
	onRebase  func()
	onShared  func(u *upstream.Upstream)
	onOwn     func(u *upstream.Upstream, of upstream.Owner, f *wire.Frame, what ownEvent) bool
	onRefused func(u *upstream.Upstream, method string)
	onAsked   func(ctx context.Context, u *upstream.Upstream, session string, f *wire.Frame) ([]byte, bool)
	onVisited func(from source, f *wire.Frame)
	onSaid    func(u *upstream.Upstream, session string, f *wire.Frame)
	snap      atomic.Pointer[snapshot]

	kicks      sync.RWMutex // guards refreshers; never waits for a merge, since those who read from upstreams take it
	refreshers map[string]*refresher

	settled   chan struct{} // closed once every upstream has been listed or has failed for the first time
	settling  sync.Once
	remaining atomic.Int64

	mu       sync.Mutex // guards listings and the order of merges
	listings map[string]*listing
	told     *snapshot // what clients know, while they are not told of changes
	holding  int       // reloads that they are not told of yet
}

// refresher is the news of one upstream.
type refresher struct {
	u     *upstream.Upstream
	kick  chan struct{}
	first sync.Once
	done  chan struct{} // closed after the first look, or in its place
	stop  context.CancelFunc
	// insists are the announcements that came since the lists were fetched.
	insists *insistence
}

func newRefresher(u *upstream.Upstream) *refresher {
	return &refresher{u: u, kick: make(chan struct{}, 1), done: make(chan struct{}), stop: func() {}, insists: newInsistence()}
}

func newCatalog(ups []*upstream.Upstream, log *zap.Logger, c *count.Counters) *catalog {
	cat := &catalog{log: log, count: c, refreshers: map[string]*refresher{}, listings: map[string]*listing{},
		settled: make(chan struct{}), onChange: func(string, [kinds]bool) {}, onInsist: func(string, [kinds]bool) {}, onUpdate: func(*upstream.Upstream, string) {},
		onRefused: func(*upstream.Upstream, string) {}, onRebase: func() {}, onShared: func(*upstream.Upstream) {}, onTask: func(*upstream.Upstream, upstream.Place, *wire.Frame) {},
		onAsked: func(context.Context, *upstream.Upstream, string, *wire.Frame) ([]byte, bool) { return nil, false },
		onSaid:  func(*upstream.Upstream, string, *wire.Frame) {}, onVisited: func(source, *wire.Frame) {}}
	for _, u := range ups {
		cat.refreshers[u.ID] = newRefresher(u)
	}
	cat.remaining.Store(int64(len(ups)))
	if len(ups) == 0 {
		cat.settle()
	}
	return cat
}

// Notification hears that an upstream's lists have changed.
func (c *catalog) Notification(u *upstream.Upstream, f *wire.Frame) {
	for k := range kinds {
		if f.Method == kindInfo[k].changed {
			c.announced(u, f.Method)
			return
		}
	}
	switch f.Method {
	case "notifications/resources/updated":
		if uri, ok := wire.DecodeString(f.Body.Get(f.Raw, "uri").Of(f.Raw)); ok {
			c.onUpdate(u, uri)
			return
		}
	case methodVisited:
		c.onVisited(source{up: u}, f)
		return
	case "notifications/message":
		c.strayLog(u, f)
		return
	}
	c.count.Drop(count.DropNotification)
}

// announced hears that an upstream has announced a change.
func (c *catalog) announced(u *upstream.Upstream, method string) {
	if r := c.refresher(u); r != nil {
		r.insists.note(method)
	}
	c.Changed(u)
}

// Changed hears that an upstream was connected anew or has announced a change.
func (c *catalog) Changed(u *upstream.Upstream) {
	r := c.refresher(u)
	if r == nil {
		return
	}
	c.onShared(u)
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// refresher gives the refresher of an upstream; nil for one that is in the catalog no more.
func (c *catalog) refresher(u *upstream.Upstream) *refresher {
	c.kicks.RLock()
	defer c.kicks.RUnlock()
	if r := c.refreshers[u.ID]; r != nil && r.u == u {
		return r
	}
	return nil
}

// all gives the refreshers at this moment.
func (c *catalog) all() []*refresher {
	c.kicks.RLock()
	defer c.kicks.RUnlock()
	return slices.Collect(maps.Values(c.refreshers))
}

// run refreshes one upstream until ctx ends.
func (c *catalog) run(ctx context.Context, r *refresher) {
	defer c.firstDone(r)
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		case <-again.C:
		}
		if r.u.AsksCallers() != nil || r.u.Idle() && c.listing(r.u.ID) != nil || !r.u.Status().Up {
			c.firstDone(r)
			continue
		}
		if sleep(ctx, refreshDelay); ctx.Err() != nil {
			return
		}
		select {
		case <-r.kick:
		default:
		}
		if err := c.refresh(ctx, r); err != nil {
			c.log.Warn("the lists of an upstream are not complete", zap.String("upstream", r.u.ID), zap.Error(err))
			again.Reset(refreshAgain)
		} else if !r.u.Announces() {
			again.Reset(refreshUnheard)
		}
		c.firstDone(r)
		sleep(ctx, refreshPause)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (c *catalog) firstDone(r *refresher) {
	r.first.Do(func() {
		close(r.done)
		if c.remaining.Add(-1) == 0 {
			c.settle()
		}
	})
}

// settle ends the waiting for upstreams that start.
func (c *catalog) settle() { c.settling.Do(func() { close(c.settled) }) }

// refresh fetches the lists of one upstream and publishes what is new.
func (c *catalog) refresh(ctx context.Context, r *refresher) error {
	u := r.u
	ctx, cancel := context.WithTimeout(ctx, u.Config().ConnectTimeout+u.Config().CallTimeout)
	defer cancel()
	lease, err := u.AcquireShared(ctx)
	if err != nil {
		return err
	}
	defer lease.Release()
	l := &lister{u: u, lease: lease, log: c.log.With(zap.String("upstream", u.ID)), count: c.count, meta: u.Config().RequestMeta}
	c.mu.Lock()
	before := c.listings[u.ID]
	c.mu.Unlock()
	after := l.fetch(ctx, before)
	fault := after.fault(u.Config())
	if u.Listed(fault); fault != nil && after.partial == nil {
		c.log.Warn("what the server of an agent offers does not fit", zap.String("upstream", u.ID), zap.Error(fault)) // asking again would not help
	}
	c.publish(u, after)
	if after.partial == nil { // otherwise nobody knows what the announcement is about
		c.insist(u, r.insists.take(before, after, time.Now()))
	}
	r.keep(c, after)
	return after.partial
}

// publish puts a new listing into the snapshot and tells those whose view it changes. What is listed of an upstream that
// has been taken out meanwhile must not bring it back.
func (c *catalog) publish(u *upstream.Upstream, l *listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refresher(u) == nil {
		return
	}
	c.listings[u.ID] = l
	before := c.snap.Load()
	after := c.merge(c.listings)
	c.snap.Store(after)
	if c.told == nil {
		c.announce(before, after)
	}
}

// listing gives what an upstream was last heard to offer; nil before.
func (c *catalog) listing(id string) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listings[id]
}

// WaitListed waits until the lists of an upstream have been fetched.
func (p *Proxy) WaitListed(ctx context.Context, id string) {
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	up := func() bool {
		u := p.ups.Get(id)
		return u != nil && u.Status().Up
	}
	for !p.fresh(id) && ctx.Err() == nil && up() {
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}
