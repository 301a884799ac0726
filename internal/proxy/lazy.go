package proxy

import (
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A lazy upstream lists its tools with a placeholder in the place of their schemas, and a tool that finds the schemas.
const (
	searchTool       = "search_tools"
	placeholder      = `{"type":"object","additionalProperties":true}`
	maxSearchResults = 20
)

// renderLazy replaces the schemas of a tool.
func (it *Item) renderLazy(p *wire.Patch, obj *wire.Object, src []byte) {
	if s := obj.Get(src, "inputSchema"); s.Ok() {
		p.Replace(s, []byte(placeholder))
	} else {
		p.Insert(obj, "inputSchema", []byte(placeholder))
	}
	p.Remove(obj, "outputSchema")
	hint := "(Full input schema available via the `" + it.search + "` tool.)"
	desc := obj.Get(src, "description")
	if text, ok := wire.DecodeString(desc.Of(src)); ok {
		p.Replace(desc, wire.AppendString(nil, strings.TrimSpace(text+" "+hint)))
	} else {
		p.Insert(obj, "description", wire.AppendString(nil, hint))
	}
}

// searchItem makes the search tool of a lazy upstream.
func (m *merger) searchItem(u *upstream.Upstream, items []*Item) *Item {
	name, why := m.namer.name(u.Config(), searchTool, false)
	it := &Item{Kind: Tool, Name: name, Wire: searchTool, Why: why, Upstream: u, local: searchIn(items)}
	text := wire.AppendString([]byte(`{"name":`), name)
	text = append(text, `,"description":"Finds tools by words of their names and descriptions, and gives their full input schemas.",`+
		`"inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"Part of a name or description, in any case."}},"required":["query"]},`+
		`"annotations":{"readOnlyHint":true}}`...)
	for c := range classes {
		it.text[c] = text
	}
	return it
}

// localAnswer is the result of a tool of our own, or why its arguments are refused.
type localAnswer struct {
	result  []byte
	invalid string
}

// searchIn makes the search over these items, as far as the asking view offers them.
func searchIn(items []*Item) func(v *view, args []byte) localAnswer {
	return func(v *view, args []byte) localAnswer {
		obj, _ := wire.ObjectAt(args, wire.Span{End: len(args)})
		query, ok := wire.DecodeString(obj.Get(args, "query").Of(args))
		if !ok || query == "" {
			return localAnswer{invalid: `search_tools needs {"query": "a non-empty string"}`}
		}
		query = strings.ToLower(query)
		total := 0
		found := []byte(`{"tools":[`)
		for _, it := range items {
			if it.Kind != Tool || it.local != nil || v.find(Tool, it.Name) != it || !it.matches(query) {
				continue
			}
			if total++; total > maxSearchResults {
				continue
			}
			if total > 1 {
				found = append(found, ',')
			}
			found = it.appendFound(found)
		}
		found = append(found, `],"total_matches":`...)
		found = appendInt(found, total)
		if total > maxSearchResults {
			found = append(found, `,"truncated":true`...)
		}
		return localAnswer{result: structuredResult(append(found, '}'))}
	}
}

// structuredResult is a tool result that gives a JSON value both ways.
func structuredResult(value []byte) []byte {
	out := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), string(value))
	out = append(append(out, `}],"structuredContent":`...), value...)
	return append(out, '}')
}

func (it *Item) matches(query string) bool {
	if strings.Contains(strings.ToLower(it.Wire), query) || strings.Contains(strings.ToLower(it.Name), query) {
		return true
	}
	src, obj := it.source()
	desc, _ := wire.DecodeString(obj.Get(src, "description").Of(src))
	return strings.Contains(strings.ToLower(desc), query)
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
