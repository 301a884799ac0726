package proxy

import (
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy/search"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// index finds tools of one view.
type index struct {
	all []*Item
	by  *search.Index
}

// indexOf gives the index of a search over these tools: that of a search tool that there is, if it is over the same.
func indexOf(items []*Item, old *Item) *index {
	if old != nil && old.find != nil && slices.Equal(old.find.all, items) {
		return old.find
	}
	return &index{items, search.New(len(items), func(i int) search.Tool { return items[i].searched() })}
}

// find gives the tools that fit a query, the best first and at most so many, and how many there are.
func (x *index) find(query string, most int) (best []*Item, total int) {
	places, total := x.by.Find(query, most)
	for _, i := range places {
		best = append(best, x.all[i])
	}
	return best, total
}

// searched gives what the tool is found by. What its server says is taken apart once, whatever the snapshots.
func (it *Item) searched() search.Tool {
	t := search.Tool{Name: it.Name, Wire: it.Wire}
	if it.over.Description != "" {
		t.Description = search.NewText(it.over.Description)
		return t
	}
	o := it.offer
	o.once.Do(func() {
		text, _ := wire.DecodeString(o.obj.Get(o.raw, "description").Of(o.raw))
		o.desc = search.NewText(text)
	})
	t.Description = o.desc
	return t
}
