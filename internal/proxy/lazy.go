package proxy

import (
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy/allow"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// In a lazy view tools are listed with a placeholder in the place of their schemas, or not at all, and beside them are
// tools of our own: one that finds tools and gives their schemas, and where tools are not listed one that calls them.
const (
	placeholder      = `{"type":"object","additionalProperties":true}`
	maxSearchResults = 20
)

// stand is a tool of our own that stands in for tools of some upstreams in one view.
type stand struct {
	name, wire, why string
	calls           bool // it calls tools; otherwise it finds them
	ups             []*upstream.Upstream
}

func (s *stand) covers(u *upstream.Upstream) bool {
	for _, one := range s.ups {
		if one == u {
			return true
		}
	}
	return false
}

// laziness is what one upstream leaves out of the lists of a view.
type laziness struct {
	*config.Lazy
	search string // the name of the tool that finds its tools
}

// plan is the laziness of a view: what stands in for what. It depends on the configuration alone.
type plan struct {
	of     map[*upstream.Upstream]laziness
	stands []*stand
}

// planFor works out the laziness of a selection. One that is for all servers has one tool to find them all; the laziness
// of single servers has a tool each, or one together where they would have the same name.
func (m *merger) planFor(sel selection) *plan {
	out := &plan{of: map[*upstream.Upstream]laziness{}}
	if sel.raw || sel.whole {
		return out
	}
	for _, u := range m.ups {
		switch {
		case !sel.takes(u):
		case sel.lazy.On():
			l := *sel.lazy
			if own := u.Config().Lazy; own != nil {
				l.Pinned = slices.Concat(l.Pinned, own.Pinned)
			}
			out.add(u, &l, func(tool string) (string, string) { return tool, "" })
		case u.Config().Lazy.On():
			out.add(u, u.Config().Lazy, func(tool string) (string, string) { return m.namer.name(u.Config(), tool, false) })
		}
	}
	return out
}

func (p *plan) add(u *upstream.Upstream, l *config.Lazy, name func(tool string) (name, why string)) {
	search := p.stand(u, false, l.SearchTool, name)
	if l.SearchOnly() {
		p.stand(u, true, l.CallTool, name)
	}
	p.of[u] = laziness{l, search}
}

// stand makes a tool stand in for an upstream, and gives its name.
func (p *plan) stand(u *upstream.Upstream, calls bool, tool string, name func(string) (string, string)) string {
	exposed, why := name(tool)
	for _, s := range p.stands {
		if s.name == exposed && s.calls == calls {
			s.ups = append(s.ups, u)
			return exposed
		}
	}
	p.stands = append(p.stands, &stand{name: exposed, wire: tool, why: why, calls: calls, ups: []*upstream.Upstream{u}})
	return exposed
}

// owner names whose a stand is, for reports.
func (s *stand) owner() string {
	if len(s.ups) == 1 {
		return s.ups[0].ID
	}
	return ourselves
}

// shown is an item as a lazy view lists it. Views that list it in the same way share it.
func (m *merger) shown(it *Item, l laziness) *Item {
	if l.Lazy == nil || it.Kind != Tool || allow.MatchesAny(l.Pinned, it.Name) || allow.MatchesAny(l.Pinned, it.Wire) {
		return it
	}
	key := shownKey{it, l.search, l.SearchOnly()}
	if m.lazies[key] == nil {
		m.lazies[key] = m.lazyBefore[key]
	}
	if m.lazies[key] == nil {
		lazy := *it
		lazy.unlisted, lazy.params = l.SearchOnly(), nil // whoever sees no schema repeats no argument in a header
		if !lazy.unlisted {
			lazy.renderLazy(l.search)
		}
		m.lazies[key] = &lazy
	}
	return m.lazies[key]
}

type shownKey struct {
	item     *Item
	search   string
	unlisted bool
}

// renderLazy takes the schemas out of the texts of a tool.
func (it *Item) renderLazy(search string) {
	hint := "(Full input schema available via the `" + search + "` tool.)"
	defer it.sumUp()
	for c := range classes {
		src := it.text[c]
		obj, _ := wire.ObjectAt(src, wire.Span{End: len(src)})
		var p wire.Patch
		p.Reset(src)
		p.Set(&obj, "inputSchema", []byte(placeholder))
		p.Remove(&obj, "outputSchema")
		text, _ := wire.DecodeString(obj.Get(src, "description").Of(src))
		p.Set(&obj, "description", wire.AppendString(nil, strings.TrimSpace(text+" "+hint)))
		it.text[c] = p.Append(nil)
	}
}

// addStands puts those tools of our own behind everything else that stand in for something. What the view before, if any, has
// made for a search over the same tools is used again.
func (v *view) addStands(p *plan, before *view) {
	for _, s := range p.stands {
		var covered []*Item
		for _, it := range v.items[Tool] {
			if it.Upstream != nil && s.covers(it.Upstream) {
				covered = append(covered, it)
			}
		}
		if len(covered) > 0 {
			v.addStand(s, covered, before)
		}
	}
}

func (v *view) addStand(s *stand, covered []*Item, before *view) {
	it := &Item{Kind: Tool, Name: s.name, Wire: s.wire, Why: s.why, stand: s}
	text := wire.AppendString([]byte(`{"name":`), s.name)
	if s.calls {
		text = append(text, `,"description":"Calls a tool by its name.",`+
			`"inputSchema":{"type":"object","properties":{"name":{"type":"string","minLength":1,"description":"The name of the tool."},`+
			`"arguments":{"type":"object","additionalProperties":true,"description":"Its arguments, as its input_schema says."}},"required":["name"]}}`...)
	} else {
		it.find = indexOf(covered, before.findStand(s.name))
		text = append(text, `,"description":"Finds tools by words of their names and descriptions, and gives their full input schemas.",`+
			`"inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"Words of a name or description, in any case."}},"required":["query"]},`+
			`"annotations":{"readOnlyHint":true}}`...)
	}
	for c := range classes {
		it.text[c] = text
	}
	it.sumUp()
	v.add(it)
}

// findStand gives a tool of our own; nil for none.
func (v *view) findStand(name string) *Item {
	if v == nil {
		return nil
	}
	if it := v.find(Tool, name); it != nil && it.stand != nil {
		return it
	}
	return nil
}

// search runs a search tool on its arguments; complaint says why they are refused.
func (it *Item) search(args []byte) (result []byte, complaint string) {
	obj, _ := wire.ObjectAt(args, wire.Span{End: len(args)})
	value := obj.Get(args, "query")
	query, ok := wire.DecodeString(value.Of(args))
	switch {
	case !value.Ok():
		return nil, it.Name + ": the argument query is missing; give a non-empty string"
	case !ok:
		return nil, it.Name + ": the argument query must be a string"
	case strings.TrimSpace(query) == "":
		return nil, it.Name + ": the argument query is empty; give words of a name or description"
	}
	found, total := it.find.find(query, maxSearchResults)
	out := []byte(`{"tools":[`)
	for i, one := range found {
		if i > 0 {
			out = append(out, ',')
		}
		out = one.appendFound(out)
	}
	out = appendInt(append(out, `],"total_matches":`...), total)
	if total > len(found) {
		out = append(out, `,"truncated":true`...)
	}
	return structuredResult(append(out, '}')), ""
}

// structuredResult is a tool result that gives a JSON value both ways.
func structuredResult(value []byte) []byte {
	out := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), string(value))
	out = append(append(out, `}],"structuredContent":`...), value...)
	return append(out, '}')
}

func (it *Item) appendFound(b []byte) []byte {
	src, obj := it.source()
	b = wire.AppendString(append(b, `{"name":`...), it.Name)
	if d := obj.Get(src, "description"); d.Ok() {
		b = append(append(b, `,"description":`...), d.Of(src)...)
	}
	b = append(append(b, `,"input_schema":`...), obj.Get(src, "inputSchema").Of(src)...)
	return append(b, '}')
}
