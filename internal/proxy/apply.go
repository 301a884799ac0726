package proxy

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// settings are what a configuration says to the proxy. They are immutable; a reload puts others in their place.
type settings struct {
	ups          []*upstream.Upstream
	ids          []string
	scoped       []*upstream.Upstream // whose lists are not everybody's
	naming       config.Naming
	names        *namer
	selections   []selection
	info         []byte // the raw object of what we call ourselves
	instructions string
}

// Shape is what the configuration says of the whole catalog.
type Shape struct {
	Naming   config.Naming
	Lazy     *config.Lazy
	Profiles map[string]config.Profile
	Server   config.ServerInfo
}

func newSettings(ups []*upstream.Upstream, shape Shape) *settings {
	s := &settings{ups: ups, naming: shape.Naming, info: serverInfo(shape.Server), instructions: shape.Server.Instructions}
	for _, u := range ups {
		s.ids = append(s.ids, u.ID)
		if scope := u.Config().CatalogScope; scope == config.ScopePrincipal || scope == config.ScopeSession {
			s.scoped = append(s.scoped, u)
		}
	}
	s.names, s.selections = newNamer(shape.Naming, configsOf(ups)), selectionsOf(shape, s.ids)
	return s
}

func configsOf(ups []*upstream.Upstream) (out []*config.Server) {
	for _, u := range ups {
		out = append(out, u.Config())
	}
	return out
}

// takes says whether a view takes from an upstream.
func (s *settings) takes(view string, u *upstream.Upstream) bool {
	for _, sel := range s.selections {
		if sel.key == view {
			return sel.takes(u)
		}
	}
	return false
}

// Apply takes over what a reload has changed. The set of upstreams has been changed already; those that are new are
// started after it, and what an upstream was last heard to offer stays until its successor has been listed. Clients are told
// once of all that changes, within the grace. Apply is called between Start and Stop, and by one goroutine at a time.
func (p *Proxy) Apply(shape Shape) {
	before := p.set.Load()
	s := newSettings(p.ups.All(), shape)
	p.metrics.keep(s.ids)
	p.set.Store(s)
	p.overlays.sweep(time.Now())
	p.watching.move(before.ups, s.ups)
	added := p.catalog.replace(s.ups)
	for _, r := range added {
		r.u.SetLogLevel(p.levels.now())
		p.keep(r)
	}
	p.runs.Go(func() {
		p.awaitFirst(added)
		p.catalog.tell()
	})
}

// Forget deletes the series of an upstream that there is no more.
func (p *Proxy) Forget(id string) {
	p.metrics.forget(id)
	p.pins.forget(id)
}

// BoundKept changes the bounds of results that are kept.
func (p *Proxy) BoundKept(b config.KeptResults) { p.stash.bound(b) }

// tellGrace is how long clients are not told of a reload, so that they are told of all its changes at once.
const tellGrace = 2 * time.Second

// awaitFirst waits until these upstreams have been listed or have failed.
func (p *Proxy) awaitFirst(all []*refresher) {
	ctx, cancel := context.WithTimeout(p.running, tellGrace)
	defer cancel()
	for _, r := range all {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

// replace makes these upstreams those of the catalog. What others offered is gone at once. It gives the refreshers of those
// that are new, and keeps back what clients are told until tell.
func (c *catalog) replace(ups []*upstream.Upstream) (added []*refresher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kicks.Lock()
	before := c.refreshers
	c.refreshers = map[string]*refresher{}
	for _, u := range ups {
		r := before[u.ID]
		if r == nil || r.u != u {
			r = newRefresher(u)
			added = append(added, r)
			c.remaining.Add(1)
			c.restore(u)
		}
		c.refreshers[u.ID] = r
	}
	c.kicks.Unlock()
	for id, r := range before {
		now := c.refreshers[id]
		if now != r {
			r.stop()
		}
		if now == nil || now.u.Config().Problem != nil {
			delete(c.listings, id)
		}
	}
	if c.told == nil {
		c.told = c.snap.Load()
	}
	c.holding++
	c.snap.Store(c.merge(c.listings))
	return added
}

// tell tells clients what has changed since replace, once the last of several reloads has come so far.
func (c *catalog) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding--; c.holding > 0 {
		return
	}
	before := c.told
	c.told = nil
	c.announce(before, c.snap.Load())
}

// announce tells those whose view has changed. c.mu is held.
func (c *catalog) announce(before, after *snapshot) {
	for key, v := range after.views {
		c.announceView(key, before.views[key], v)
	}
	for key, v := range before.views {
		if after.views[key] == nil {
			c.announceView(key, v, nil)
		}
	}
	c.onRebase()
}

func (c *catalog) announceView(key string, before, after *view) {
	if before == nil {
		before = emptyView
	}
	if after == nil {
		after = emptyView
	}
	var changed [kinds]bool
	for k := range kinds {
		changed[k] = after.sums[k] != before.sums[k]
	}
	if changed != [kinds]bool{} {
		c.onChange(key, changed)
	}
}

// move hands what is watched at an upstream on to the one that takes its place, which restores it when it is connected.
func (w *watching) move(before, after []*upstream.Upstream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	successors := map[string]*upstream.Upstream{}
	for _, u := range after {
		successors[u.ID] = u
	}
	for _, from := range slices.Collect(maps.Keys(w.of)) {
		u := successors[from.up.ID]
		if u == nil || u == from.up || !slices.Contains(before, from.up) {
			continue
		}
		to := source{u, from.creds}
		w.of[to] = w.of[from]
		delete(w.of, from)
		for _, one := range w.of[to] {
			one.from = to
		}
		w.publish(to)
	}
}
