package proxy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// ownView is the catalog of one caller: everybody's, with overlays in the place of what some upstreams offer everybody. It
// is made by the same merger, so names, policies, overrides and search are what they are for everybody. It holds for one
// base and these listings.
type ownView struct {
	base     *snapshot
	overlays map[*upstream.Upstream]*listing
	snap     *snapshot // with the one view
	lastUse  time.Time
}

// maxOwnViews bounds the views that are kept; others are made again.
const maxOwnViews = 256

// identity tells callers apart that see different things: the principal, and what its overlays depend on.
func (c *Caller) identity() string {
	if len(c.own) == 0 {
		return c.Principal
	}
	var b strings.Builder
	b.WriteString(c.Principal)
	for _, o := range c.own {
		b.WriteString("\x00" + o.key.up.ID + "\x00" + o.key.id)
	}
	return b.String()
}

// snapshot gives the catalog that a caller sees.
func (p *Proxy) snapshot(c *Caller) *snapshot {
	if len(c.own) == 0 {
		return p.catalog.snap.Load()
	}
	return p.overlays.snapshot(c)
}

func (o *overlays) snapshot(c *Caller) *snapshot {
	key := c.View + "\x00" + c.identity()
	o.mu.Lock()
	found := map[*upstream.Upstream]*listing{}
	for _, own := range c.own {
		if e := o.all[own.key]; e != nil && e.listing != nil {
			found[own.key.up] = e.listing
		}
	}
	base := o.p.catalog.snap.Load()
	v := o.views[key]
	if v != nil && v.base == base && maps.Equal(v.overlays, found) {
		v.lastUse = time.Now()
		o.mu.Unlock()
		return v.snap
	}
	o.mu.Unlock()
	if len(found) == 0 {
		return base
	}
	v = &ownView{base: base, overlays: found, snap: o.p.overlaid(c.View, found), lastUse: time.Now()}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.views) >= maxOwnViews {
		o.forgetView()
	}
	o.views[key] = v
	return v.snap
}

// forgetView drops the view that was not used for longest. o.mu is held.
func (o *overlays) forgetView() {
	oldest := ""
	for key, v := range o.views {
		if oldest == "" || v.lastUse.Before(o.views[oldest].lastUse) {
			oldest = key
		}
	}
	delete(o.views, oldest)
}

// overlaid makes one view with overlays.
func (p *Proxy) overlaid(viewKey string, over map[*upstream.Upstream]*listing) *snapshot {
	c := p.catalog
	c.mu.Lock()
	listings, base := maps.Clone(c.listings), c.snap.Load()
	c.mu.Unlock()
	waiting := map[string]map[string]pins.Waiting{}
	maps.Copy(waiting, base.waiting)
	for u, l := range over {
		listings[u.ID] = l
		if u.Config().Pinned() {
			waiting[u.ID] = p.pins.judgeOwn(u, l)
		}
	}
	m := p.merger(listings)
	s := *m.settings
	var needed []selection // names are made for everything first
	for _, sel := range s.selections {
		if sel.key == viewKey || sel.key == ViewAll {
			needed = append(needed, sel)
		}
	}
	s.selections = needed
	m.settings, m.log, m.sparing, m.waiting = &s, zap.NewNop(), true, waiting
	m.follow(base)
	out := m.build()
	return &snapshot{views: map[string]*view{viewKey: out.views[viewKey]}}
}

// subscribers gives who hears of changes of an overlay. overlays.mu is held.
func (e *overlay) subscribers() []*Subscriptions { return slices.Collect(maps.Keys(e.heard)) }

// ownLists is what a client that hears of changes last saw, guarded by Subscriptions.mu.
type ownLists struct {
	caller *Caller // without what belongs to one request
	seen   [kinds]uint64
	tell   func(Changes)
}

// HearLists sets what is told of changes of lists that are the client's own. It is called before the subscriptions are used;
// f must not block.
func (s *Subscriptions) HearLists(f func(Changes)) { s.lists.tell = f }

// Own says whether the client is told of its lists by what HearLists has set, and not with everybody. Nil has none.
func (s *Subscriptions) Own() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists.caller != nil
}

// Listen lets a client hear of changes of the lists that this caller sees, where they are its own.
func (s *Subscriptions) Listen(c *Caller) {
	c = s.p.personal(c)
	if len(c.own) == 0 || s.lists.tell == nil {
		return
	}
	s.p.overlays.await(s.p.base, c, false)
	s.hears(c)
}

// hears notes what the client has seen by now.
func (s *Subscriptions) hears(c *Caller) {
	kept := &Caller{Era: c.Era, Version: c.Version, View: c.View, Principal: c.Principal, Unit: c.Unit, own: c.own}
	seen := s.p.view(kept).sums
	s.mu.Lock()
	closed := s.closed || s.lists.tell == nil
	if !closed {
		s.lists.caller, s.lists.seen = kept, seen
	}
	s.mu.Unlock()
	if closed {
		return
	}
	s.p.overlays.hear(s, kept)
	s.mu.Lock()
	closed = s.closed
	s.mu.Unlock()
	if closed { // meanwhile
		s.p.overlays.deafen(s)
	}
}

// hear lets a client hear of the overlays that it sees.
func (o *overlays) hear(s *Subscriptions, c *Caller) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, own := range c.own {
		if e := o.all[own.key]; e != nil {
			e.heard[s] = struct{}{}
		}
	}
	o.heard[s] = c
}

// deafen forgets a client that has gone.
func (o *overlays) deafen(s *Subscriptions) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.all {
		delete(e.heard, s)
	}
	delete(o.heard, s)
}

// rebased hears that the catalog of everybody has changed: those who see it with overlays are told if theirs has.
func (o *overlays) rebased() {
	o.mu.Lock()
	heard := slices.Collect(maps.Keys(o.heard))
	o.mu.Unlock()
	if len(heard) > 0 {
		o.p.background.Go(func() { o.tell(heard) })
	}
}

// tell tells clients what has changed of what they see.
func (o *overlays) tell(heard []*Subscriptions) {
	for _, s := range heard {
		s.compare()
	}
}

// compare tells the client which of its lists are others than those that it has seen.
func (s *Subscriptions) compare() {
	s.mu.Lock()
	c := s.lists.caller
	s.mu.Unlock()
	if c == nil {
		return
	}
	now := s.p.view(c).sums
	s.mu.Lock()
	var changed [kinds]bool
	for k := range kinds {
		changed[k] = now[k] != s.lists.seen[k]
	}
	s.lists.seen = now
	tell := s.lists.tell
	s.mu.Unlock()
	if changed != [kinds]bool{} {
		tell(changesOf(changed))
	}
}

func changesOf(c [kinds]bool) Changes {
	return Changes{Tools: c[Tool], Prompts: c[Prompt], Resources: c[Resource] || c[Template]}
}

// forwardedMeta is the _meta of lists that are fetched for a caller: what the configuration adds, and over pipes what is
// forwarded of the caller's headers.
func forwardedMeta(u *upstream.Upstream, creds *upstream.Credentials) []byte {
	meta := u.Config().RequestMeta
	if u.Config().URL != "" || creds == nil {
		return meta
	}
	obj, ok := wire.ObjectAt(meta, wire.Span{End: len(meta)})
	value := forwardedObject(u.Config().ForwardHeaders, creds.Headers())
	if !ok || len(obj.Members) == 0 {
		return append(append([]byte(`{"`+forwardedMember+`":`), value...), '}')
	}
	var p wire.Patch
	p.Reset(meta)
	p.Set(&obj, forwardedMember, value)
	return p.Append(nil)
}
