package proxy

import (
	"hash/maphash"
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
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
}

// NameReport is one line of the table of final names.
type NameReport struct {
	Exposed, Upstream, Wire, Kind, Why string
}

// view is what one selection of the catalog offers. It is immutable.
type view struct {
	key   string
	items [kinds][]*Item
	index [kinds]map[string]*Item
	// lists are the results of the list methods, rendered.
	lists [kinds][classes][]byte
	// sums tell whether two views offer the same, whatever the order.
	sums [kinds]uint64
}

// selection is what a view takes of the catalog.
type selection struct {
	key     string
	servers []string // nil for all
	policy  config.Policy
	raw     bool // wire names, no repairs, no policy of names
}

var seed = maphash.MakeSeed()

func newView(sel selection) *view {
	v := &view{key: sel.key}
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
	v.sums[it.Kind] += maphash.Bytes(seed, it.text[classModern]) + maphash.Bytes(seed, it.text[classLegacy])
	return true
}

// seal renders the lists; tail is what modern ones carry beside the items.
func (v *view) seal(tail []byte) {
	for k := range kinds {
		for c := range classes {
			v.lists[k][c] = renderList(k, c, v.items[k], tail)
		}
	}
}

// renderList makes the result of a list method.
func renderList(k Kind, c class, items []*Item, tail []byte) []byte {
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
	if c == classModern {
		b = append(b, tail...)
	}
	return append(b, '}')
}

// modernTail is what modern results of lists carry beside the items. The list may change at any moment and may depend
// on who asks, so it is not for shared caches (2026-07-28, "Caching").
func modernTail(serverInfo []byte) []byte {
	tail := []byte(`,"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"` + wire.MetaServerInfo + `":`)
	return append(append(tail, serverInfo...), '}')
}

// render makes the text of an item for each class.
func (it *Item) render(raw bool) {
	o := it.offer
	src, obj, id := o.raw, o.obj, o.id
	if o.fixed != nil && !raw {
		src = o.fixed
		obj, _ = wire.ObjectAt(src, wire.Span{End: len(src)})
		id = obj.Get(src, kindInfo[it.Kind].id)
	}
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
		if c == classLegacy && o.structuredAny && !raw {
			p.Remove(&obj, "outputSchema")
			changed = true
		}
		if it.search != "" {
			it.renderLazy(&p, &obj, src)
			changed = true
		}
		if !changed {
			it.text[c] = src
			continue
		}
		it.text[c] = p.Append(nil)
	}
}

// find gives the item of that name; nil for one that is hidden or was never there.
func (v *view) find(k Kind, name string) *Item { return v.index[k][name] }

// servers gives the upstreams of a selection in their order.
func (s selection) takes(u *upstream.Upstream) bool {
	return s.servers == nil || slices.Contains(s.servers, u.ID)
}
