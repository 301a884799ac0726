package proxy

import (
	"cmp"
	"fmt"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// merger builds a snapshot from the listings, in the order of the configuration.
type merger struct {
	ups        []*upstream.Upstream
	listings   map[string]*listing
	namer      *namer
	naming     config.Naming
	selections []selection
	log        *zap.Logger
	tail       func(v *view, k Kind) []byte       // of modern lists
	uris       map[string]string                  // of the upstream at hand, that are exposed in the qualified form
	waiting    map[string]map[string]pins.Waiting // tools that nobody has approved, by upstream and wire name
	report     []NameReport
}

func (m *merger) build() *snapshot {
	s := &snapshot{views: map[string]*view{}}
	named := m.named()
	for _, sel := range m.selections {
		v := newView(sel)
		for _, u := range m.ups {
			if sel.takes(u) {
				v.ups = append(v.ups, u)
				m.fill(v, sel, u, named[u.ID])
			}
		}
		v.seal(m.tail)
		s.views[sel.key] = v
	}
	m.withheldPins()
	s.names, s.waiting = m.report, m.waiting
	return s
}

// fill adds what one upstream offers to a view.
func (m *merger) fill(v *view, sel selection, u *upstream.Upstream, named []*Item) {
	if sel.raw {
		for _, it := range m.wireItems(u) {
			v.add(it)
		}
		return
	}
	for _, it := range named {
		if it.Kind != Tool || it.local != nil || allows(sel.policy, it.Wire) {
			v.add(it)
		}
	}
}

// wireItems are the items of an upstream as they are.
func (m *merger) wireItems(u *upstream.Upstream) []*Item {
	var out []*Item
	m.offered(u, func(o *offer) {
		it := &Item{Kind: o.kind, Name: o.wire, Wire: o.wire, Upstream: u, offer: o}
		it.render(true, nil)
		out = append(out, it)
	})
	return out
}

// offered goes through what an upstream offers and its policy lets through.
func (m *merger) offered(u *upstream.Upstream, f func(*offer)) {
	l := m.listings[u.ID]
	if l == nil {
		return
	}
	// Resources first: tools may point at them.
	for _, k := range []Kind{Resource, Template, Tool, Prompt} {
		for _, o := range l.offers[k] {
			if _, waits := m.waiting[u.ID][o.wire]; k == Tool && (waits || !m.configured(u, o)) {
				continue
			}
			f(o)
		}
	}
}

// configured says whether the configuration lets a tool through.
func (m *merger) configured(u *upstream.Upstream, o *offer) bool {
	return allows(u.Config().ToolPolicy, o.wire) && !u.Config().Tools[o.wire].Disabled
}

// named gives all items their exposed names, by upstream.
func (m *merger) named() map[string][]*Item {
	conflicts := m.conflicts()
	taken := [kinds]map[string]*Item{}
	for k := range kinds {
		taken[k] = map[string]*Item{}
	}
	out := map[string][]*Item{}
	for _, u := range m.ups {
		m.uris = map[string]string{}
		m.offered(u, func(o *offer) {
			if o.withheld != "" {
				m.reported(&Item{Kind: o.kind, Wire: o.wire, Upstream: u, Why: "withheld: " + o.withheld})
				return
			}
			it := &Item{Kind: o.kind, Name: o.wire, Wire: o.wire, Upstream: u, offer: o}
			if o.kind == Tool && u.Config().Lazy {
				it.search, _ = m.namer.name(u.Config(), searchTool, false)
			}
			if o.kind == Tool || o.kind == Prompt {
				if o.kind == Tool {
					it.over = u.Config().Tools[o.wire]
				}
				it.Name, it.Why = m.namer.name(u.Config(), cmp.Or(it.over.Name, o.wire), conflicts[o.kind][o.wire] > 1)
			}
			m.settle(it, taken[o.kind], func(it *Item) { out[u.ID] = append(out[u.ID], it) })
		})
		if u.Config().Lazy && len(out[u.ID]) > 0 {
			it := m.searchItem(u, out[u.ID])
			m.settle(it, taken[Tool], func(it *Item) { out[u.ID] = append(out[u.ID], it) })
		}
	}
	return out
}

// settle takes a name for an item, or does what the configuration says about one that is taken.
func (m *merger) settle(it *Item, taken map[string]*Item, accept func(*Item)) {
	if first := taken[it.Name]; first != nil {
		if it.Kind >= Resource {
			// The first owner of a URI keeps it; this one is qualified.
			it.Name, it.Why = uriPrefix(it.Upstream.ID)+it.Wire, whyConflict
			m.uris[it.Wire] = it.Name
		} else if m.naming.OnConflict != config.ConflictSuffix {
			m.refuse(it, first)
			return
		} else {
			it.Name, it.Why = m.namer.suffixed(it.Upstream.Config(), it.Wire, it.Name), whyConflict
		}
		if taken[it.Name] != nil {
			m.refuse(it, taken[it.Name])
			return
		}
	}
	taken[it.Name] = it
	if it.local == nil {
		it.render(false, m.uris)
	}
	m.reported(it)
	accept(it)
}

// refuse withholds an item whose name belongs to another.
func (m *merger) refuse(it, first *Item) {
	why := fmt.Sprintf("withheld: the name %q belongs to %s of %s", it.Name, first.Wire, first.Upstream.ID)
	if m.naming.OnConflict == config.ConflictFail {
		m.log.Error("two items have the same name; the second is withheld",
			zap.String("kind", it.Kind.String()), zap.String("name", it.Name),
			zap.String("upstream", it.Upstream.ID), zap.String("tool", it.Wire), zap.String("first", first.Upstream.ID))
		why = conflictPrefix + why
	}
	it.Name, it.Why = "", why
	m.reported(it)
}

// conflictPrefix marks conflicts that are errors.
const conflictPrefix = "conflict, "

func (m *merger) reported(it *Item) {
	if it.Kind == Tool || it.Kind == Prompt {
		m.report = append(m.report, NameReport{it.Name, it.Upstream.ID, it.Wire, it.Kind.String(), it.Why})
	}
}

// conflicts counts the owners of each wire name, where that decides the exposed one.
func (m *merger) conflicts() (out [kinds]map[string]int) {
	for k := range kinds {
		out[k] = map[string]int{}
	}
	if m.naming.Mode != config.NamingOnConflict {
		return out
	}
	for _, u := range m.ups {
		if u.Config().ToolPrefix == nil {
			m.offered(u, func(o *offer) { out[o.kind][o.wire]++ })
		}
	}
	return out
}
