package proxy

import (
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// class is how an item is rendered: what clients of one era can take.
type class uint8

const (
	classLegacy class = iota
	classModern
	classes
)

func classOf(era wire.Era) class {
	if era == wire.Modern {
		return classModern
	}
	return classLegacy
}

// snapshot is the merged catalog at one moment. It is immutable.
type snapshot struct {
	views map[string]*view
	// names reports the tools and prompts with their names, also those that are not offered.
	names []NameReport
	// waiting are the tools of pinned upstreams that nobody has approved, by wire name.
	waiting map[string]map[string]pins.Waiting
	// named are the items of endpoints of several servers, by what they were made of.
	named map[*offer]*Item
	// lazies are those of them that are listed lazily.
	lazies map[shownKey]*Item
}

// NameReport is one line of the table of final names.
type NameReport struct {
	Exposed, Upstream, Wire, Kind, Why string
	// Effect is what a tool does by its server's word; empty for other kinds.
	Effect config.Effect
	// Profile is the profile that has this name; empty for the names of everything.
	Profile string
}

// view is what one selection of the catalog offers. It is immutable.
type view struct {
	key   string
	items [kinds][]*Item // listed or not
	// listed are those of the items that lists show.
	listed [kinds][]*Item
	index  [kinds]map[string]*Item
	policy *policies
	// instructions are those of a profile; empty for those of the whole proxy.
	instructions string
	ups          []*upstream.Upstream // that it takes from
	// templates are those of the view, the most specific first.
	templates []compiled
	// lists are the results of the list methods, rendered, where they are one page.
	lists [kinds][classes][]byte
	// tails are what modern lists carry beside the items.
	tails [kinds][]byte
	// sums tell whether two views offer the same, whatever the order.
	sums [kinds]uint64
}

// selection is what a view takes of the catalog.
type selection struct {
	key     string
	servers []string // nil for all
	policy  policies
	raw     bool // wire names, no repairs
	// lazy is the laziness of all servers together; whole lists everything, whatever they say.
	lazy  *config.Lazy
	whole bool
	// naming is set for names of its own, which are made among these servers.
	naming       *config.Naming
	profile      string
	instructions string
}

var seed = maphash.MakeSeed()

func newView(sel selection) *view {
	v := &view{key: sel.key, policy: &sel.policy, instructions: sel.instructions}
	for k := range kinds {
		v.index[k] = map[string]*Item{}
	}
	return v
}

// add puts an item into the view, unless its name is taken.
func (v *view) add(it *Item) bool {
	if v.index[it.Kind][it.Name] != nil {
		return false
	}
	v.index[it.Kind][it.Name] = it
	v.items[it.Kind] = append(v.items[it.Kind], it)
	if it.unlisted {
		return true
	}
	v.listed[it.Kind] = append(v.listed[it.Kind], it)
	v.sums[it.Kind] += it.sum
	return true
}

// sumUp is called when the texts of an item have been made.
func (it *Item) sumUp() {
	it.sum = maphash.Bytes(seed, it.text[classModern]) + maphash.Bytes(seed, it.text[classLegacy])
}

// seal renders the lists, if they are to be kept; tail makes what modern ones carry beside the items.
func (v *view) seal(tail func(v *view, k Kind) []byte, render bool) {
	for _, it := range v.items[Template] {
		if c, ok := compileTemplate(it); ok {
			v.templates = append(v.templates, c)
		}
	}
	slices.SortStableFunc(v.templates, func(a, b compiled) int { return b.literal - a.literal })
	for k := range kinds {
		v.tails[k] = tail(v, k)
		if len(v.listed[k]) > pageItems || !render {
			continue
		}
		for c := range classes {
			v.lists[k][c] = renderList(k, c, v.listed[k], v.tails[k], "")
		}
	}
}

func (v *view) has(u *upstream.Upstream) bool { return slices.Contains(v.ups, u) }

// renderList makes the result of a list method.
func renderList(k Kind, c class, items []*Item, tail []byte, next string) []byte {
	n := 64 + len(tail)
	for _, it := range items {
		n += len(it.text[c]) + 1
	}
	b := append(make([]byte, 0, n), `{"`+kindInfo[k].list+`":[`...)
	for i, it := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it.text[c]...)
	}
	b = append(b, ']')
	if next != "" {
		b = wire.AppendString(append(b, `,"nextCursor":`...), next)
	}
	if c == classModern {
		b = append(b, tail...)
	}
	return append(b, '}')
}

// modernTail is what modern results of lists carry beside the items. A list may depend on who asks, so it is not for
// shared caches; it is fresh for as long as the part of it that is so for the shortest (2026-07-28, "Caching").
func modernTail(ttlMs int64, serverInfo []byte) []byte {
	tail := strconv.AppendInt([]byte(`,"resultType":"complete","ttlMs":`), ttlMs, 10)
	tail = append(tail, `,"cacheScope":"private","_meta":{"`+wire.MetaServerInfo+`":`...)
	return append(append(tail, serverInfo...), '}')
}

// override makes the changes that the configuration wants of a tool.
func (it *Item) override() {
	if it.over.Title == "" && it.over.Description == "" && len(it.over.Arguments) == 0 {
		return
	}
	src, obj := it.source()
	var p wire.Patch
	p.Reset(src)
	if it.over.Title != "" {
		p.Set(&obj, "title", wire.AppendString(nil, it.over.Title))
	}
	if it.over.Description != "" {
		p.Set(&obj, "description", wire.AppendString(nil, it.over.Description))
	}
	patchSchema(&p, src, &obj, it.over.Arguments)
	it.shown = p.Append(nil)
}

// source is the item as it is offered, but for its name.
func (it *Item) source() ([]byte, wire.Object) {
	src := it.offer.raw
	switch {
	case it.shown != nil:
		src = it.shown
	case it.offer.fixed != nil && !it.raw:
		src = it.offer.fixed
	default:
		return src, it.offer.obj
	}
	obj, _ := wire.ObjectAt(src, wire.Span{End: len(src)})
	return src, obj
}

// render makes the text of an item for each class.
func (it *Item) render(uris map[string]string) {
	o := it.offer
	defer it.sumUp()
	it.override()
	it.params = unfixed(o.params, it.over.Arguments)
	src, obj := it.source()
	id := obj.Get(src, kindInfo[it.Kind].id)
	for c := range classes {
		var p wire.Patch
		p.Reset(src)
		changed := false
		if it.Name != it.Wire {
			p.Replace(id, wire.AppendString(nil, it.Name))
			changed = true
			if it.Why == whyCharacters || it.Why == whyLength {
				if !obj.Has(src, "title") {
					p.Insert(&obj, "title", wire.AppendString(nil, it.Wire))
				}
			}
		}
		if it.Kind == Tool && len(uris) > 0 {
			it.linked = it.renderUI(&p, &obj, src, uris)
			changed = it.linked || changed
		}
		if c == classLegacy && o.structuredAny && !it.raw {
			p.Remove(&obj, "outputSchema")
			changed = true
		}
		if !changed {
			it.text[c] = src
			continue
		}
		it.text[c] = p.Append(nil)
	}
}

// renderUI exposes the URI of the page that a tool is shown with, where that URI belongs to another upstream.
func (it *Item) renderUI(p *wire.Patch, obj *wire.Object, src []byte, uris map[string]string) bool {
	meta, _ := wire.ObjectAt(src, obj.Get(src, "_meta"))
	ui, _ := wire.ObjectAt(src, meta.Get(src, "ui"))
	span := ui.Get(src, "resourceUri")
	uri, _ := wire.DecodeString(span.Of(src))
	exposed, ok := uris[uri]
	if ok {
		p.Replace(span, wire.AppendString(nil, exposed))
	}
	return ok
}

// find gives the item of that name; nil for one that is hidden or was never there.
func (v *view) find(k Kind, name string) *Item { return v.index[k][name] }

// servers gives the upstreams of a selection in their order.
func (s selection) takes(u *upstream.Upstream) bool {
	return s.servers == nil || slices.Contains(s.servers, u.ID)
}
