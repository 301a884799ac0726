package proxy

import (
	"cmp"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// merger builds a snapshot from the listings, in the order of the configuration.
type merger struct {
	*settings
	namer    *namer // of the names at hand
	listings map[string]*listing
	log      *zap.Logger
	tail     func(v *view, k Kind) []byte // of modern lists
	common   *nameSet                     // the names that all views share that have none of their own
	lazies   map[shownKey]*Item
	waiting  map[string]map[string]pins.Waiting // tools that nobody has approved, by upstream and wire name
	report   []NameReport
	sparing  bool             // lists are rendered when they are asked for
	reuse    map[*offer]*Item // items that need not be made again where they are the same; nil for none
	// lazyBefore are lazy items that need not be made again.
	lazyBefore map[shownKey]*Item
	// viewsBefore are where indexes may be taken from.
	viewsBefore map[string]*view
}

func newMerger(s *settings, listings map[string]*listing, log *zap.Logger, tail func(v *view, k Kind) []byte) *merger {
	return &merger{settings: s, namer: s.names, listings: listings, log: log, tail: tail, lazies: map[shownKey]*Item{}}
}

// follow lets the merger use again what has not changed since a snapshot; nil is the first.
func (m *merger) follow(before *snapshot) {
	if before != nil {
		m.reuse, m.lazyBefore, m.viewsBefore = before.named, before.lazies, before.views
	}
}

func (m *merger) build() *snapshot {
	s := &snapshot{views: map[string]*view{}}
	plans := make([]*plan, len(m.selections))
	for i, sel := range m.selections {
		m.namer = m.namerOf(sel)
		plans[i] = m.planFor(sel)
	}
	for i, sel := range m.selections {
		m.namer = m.namerOf(sel)
		s.views[sel.key] = m.view(sel, plans[i])
	}
	m.withheldPins()
	if !m.sparing {
		s.named, s.lazies = m.common.byOffer(), m.lazies
	}
	s.names, s.waiting = m.report, m.waiting
	return s
}

func (m *merger) namerOf(sel selection) *namer {
	if sel.naming == nil {
		return m.names
	}
	return newNamer(*sel.naming, configsOf(m.taken(sel)))
}

// taken are the upstreams of a selection.
func (m *merger) taken(sel selection) (out []*upstream.Upstream) {
	for _, u := range m.ups {
		if sel.takes(u) {
			out = append(out, u)
		}
	}
	return out
}

// view makes one view. Views share the items that look the same in them.
func (m *merger) view(sel selection, p *plan) *view {
	v := newView(sel)
	v.ups = m.taken(sel)
	if sel.raw {
		for _, u := range v.ups {
			m.wireItems(u, v.add)
		}
		v.seal(m.tail, !m.sparing)
		return v
	}
	named := m.namesFor(sel, p)
	for _, u := range v.ups {
		for _, it := range named.items[u.ID] {
			if sel.policy.offers(it.offer) {
				v.add(m.shown(it, p.of[u]))
			}
		}
	}
	v.addStands(p, m.viewsBefore[sel.key])
	m.reportStands(sel, v)
	v.seal(m.tail, !m.sparing)
	return v
}

// wireItems are the items of an upstream as they are, but for the arguments that are not left to clients.
func (m *merger) wireItems(u *upstream.Upstream, add func(*Item) bool) {
	m.offered(u, func(o *offer) {
		if o.withheld != "" && u.Config().Agent != nil {
			return // there is nothing to show in its place
		}
		it := &Item{Kind: o.kind, Name: o.wire, Wire: o.wire, Upstream: u, offer: o, raw: true}
		if o.kind == Tool {
			over := u.Config().Tools[o.wire]
			it.over = config.ToolOverride{CallTimeout: over.CallTimeout, Arguments: over.Arguments}
		}
		it.render(nil)
		add(it)
	})
}

// offered goes through what an upstream offers and its configuration lets through.
func (m *merger) offered(u *upstream.Upstream, f func(*offer)) {
	l := m.listings[u.ID]
	if l == nil {
		return
	}
	if a := u.Config().Agent; a != nil {
		o := agentOffer(a, l.offers[Tool])
		if _, waits := m.waiting[u.ID][o.behind()]; !waits {
			f(o)
		}
		return
	}
	// Resources first: tools may point at them.
	for _, k := range []Kind{Resource, Template, Tool, Prompt} {
		for _, o := range l.offers[k] {
			if _, waits := m.waiting[u.ID][o.wire]; exposes(u.Config(), o) && !(waits && k == Tool) {
				f(o)
			}
		}
	}
}

// nameSet is what the items of some upstreams are called, as far as they got a name.
type nameSet struct {
	config.Naming
	profile string // that it is for; empty for the common one
	items   map[string][]*Item
	owners  [kinds]map[string]*Item
	// uris are those of the upstream at hand that are exposed in the qualified form.
	uris map[string]string
	// stands are the names of our own tools, which nobody else gets; clashed says that somebody would have had one.
	stands  []string
	clashed bool
}

// namesFor gives the names for a view: the common ones unless it has its own, or tools of its own that would be in the way.
func (m *merger) namesFor(sel selection, p *plan) *nameSet {
	if sel.naming == nil && m.common != nil && m.common.serves(p) {
		return m.common
	}
	n := &nameSet{Naming: m.naming, profile: sel.profile, items: map[string][]*Item{}}
	ups := m.ups
	if sel.naming != nil {
		n.Naming, ups = *sel.naming, m.taken(sel)
	}
	for k := range kinds {
		n.owners[k] = map[string]*Item{}
	}
	for _, s := range p.stands {
		if first := n.owners[Tool][s.name]; first != nil {
			m.refuse(n, &Item{Kind: Tool, Name: s.name, Wire: s.wire, stand: s}, first)
			continue
		}
		n.owners[Tool][s.name] = &Item{Kind: Tool, Name: s.name, Wire: s.wire, stand: s}
		n.stands = append(n.stands, s.name)
	}
	m.fill(n, ups)
	if sel.key == ViewAll {
		m.common = n
	}
	return n
}

// byOffer gives the items by what they were made of.
func (n *nameSet) byOffer() map[*offer]*Item {
	out := map[*offer]*Item{}
	for _, items := range n.items {
		for _, it := range items {
			out[it.offer] = it
		}
	}
	return out
}

// serves says whether the names would be the same with these tools of our own.
func (n *nameSet) serves(p *plan) bool {
	same := len(n.stands) == len(p.stands)
	for _, s := range p.stands {
		if slices.Contains(n.stands, s.name) {
			continue
		}
		if same = false; n.owners[Tool][s.name] != nil {
			return false
		}
	}
	return same || !n.clashed
}

// fill gives all items of these upstreams their exposed names.
func (m *merger) fill(n *nameSet, ups []*upstream.Upstream) {
	conflicts := m.conflicts(n, ups)
	for _, u := range ups {
		n.uris = map[string]string{}
		m.offered(u, func(o *offer) {
			it := &Item{Kind: o.kind, Name: o.wire, Wire: o.wire, Upstream: u, offer: o}
			if o.withheld != "" {
				it.Name, it.Why = "", "withheld: "+o.withheld
				m.reported(n, it)
				return
			}
			if o.kind == Tool {
				it.over = u.Config().Tools[o.wire]
			}
			if o.kind == Tool || o.kind == Prompt {
				it.Name, it.Why = m.namer.name(u.Config(), cmp.Or(it.over.Name, o.wire), conflicts[o.kind][o.wire] > 1)
			}
			if it = m.settle(n, it); it != nil {
				n.items[u.ID] = append(n.items[u.ID], it)
			}
		})
	}
}

// settle takes a name for an item, or does what the configuration says about one that is taken; nil where it gets none.
func (m *merger) settle(n *nameSet, it *Item) *Item {
	owners := n.owners[it.Kind]
	if first := owners[it.Name]; first != nil {
		n.clashed = n.clashed || first.stand != nil
		switch {
		case it.Kind >= Resource:
			// The first owner of a URI keeps it; this one is qualified.
			it.Name, it.Why = uriPrefix(it.Upstream.ID)+it.Wire, whyConflict
			n.uris[it.Wire] = it.Name
		case n.OnConflict != config.ConflictSuffix:
			m.refuse(n, it, first)
			return nil
		default:
			it.Name, it.Why = m.namer.suffixed(it.Upstream.Config(), it.Wire, it.Name), whyConflict
		}
		if owners[it.Name] != nil {
			m.refuse(n, it, owners[it.Name])
			return nil
		}
	}
	if old := m.reuse[it.offer]; old != nil && n.same(it, old) {
		it = old
	} else {
		it.render(n.uris)
	}
	owners[it.Name] = it
	m.reported(n, it)
	return it
}

// same says whether an item would look like one that there is.
func (n *nameSet) same(it, old *Item) bool {
	return old.Upstream == it.Upstream && old.Name == it.Name && old.Why == it.Why && !old.linked && len(n.uris) == 0
}

// refuse withholds an item whose name belongs to another.
func (m *merger) refuse(n *nameSet, it, first *Item) {
	why := fmt.Sprintf("withheld: the name %q belongs to %s of %s", it.Name, first.Wire, first.owner())
	if first.stand != nil {
		why += " itself, which lazy can give another name"
	}
	if n.OnConflict == config.ConflictFail {
		m.log.Error("two items have the same name; the second is withheld",
			zap.String("kind", it.Kind.String()), zap.String("name", it.Name),
			zap.String("upstream", it.owner()), zap.String("tool", it.Wire), zap.String("first", first.owner()))
		why = conflictPrefix + why
	}
	it.Name, it.Why = "", why
	m.reported(n, it)
}

// owner is whose the item is, for reports.
func (it *Item) owner() string {
	if it.stand != nil {
		return it.stand.owner()
	}
	return it.Upstream.ID
}

// conflictPrefix marks conflicts that are errors.
const conflictPrefix = "conflict, "

func (m *merger) reported(n *nameSet, it *Item) {
	if it.Kind == Tool || it.Kind == Prompt {
		m.reportAs(n.profile, it)
	}
}

func (m *merger) reportAs(profile string, it *Item) {
	r := NameReport{Exposed: it.Name, Upstream: it.owner(), Wire: it.Wire, Kind: it.Kind.String(), Why: it.Why, Profile: profile}
	if it.Kind == Tool {
		r.Effect = it.effect()
	}
	m.report = append(m.report, r)
}

func (it *Item) effect() config.Effect {
	switch {
	case it.stand == nil:
		return it.offer.effect()
	case it.stand.calls:
		return config.EffectSideEffect
	}
	return config.EffectReadOnly
}

// reportStands reports the tools of our own, those of profiles where the whole has not the same.
func (m *merger) reportStands(sel selection, v *view) {
	for _, it := range v.items[Tool] {
		if it.stand == nil || sel.key != ViewAll && slices.Contains(m.common.stands, it.Name) {
			continue
		}
		m.reportAs(sel.profile, it)
	}
}

// conflicts counts the owners of each wire name, where that decides the exposed one.
func (m *merger) conflicts(n *nameSet, ups []*upstream.Upstream) (out [kinds]map[string]int) {
	for k := range kinds {
		out[k] = map[string]int{}
	}
	if n.Mode != config.NamingOnConflict {
		return out
	}
	for _, u := range ups {
		if u.Config().ToolPrefix == nil {
			m.offered(u, func(o *offer) { out[o.kind][o.wire]++ })
		}
	}
	return out
}
