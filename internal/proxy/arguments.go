package proxy

import (
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// The configuration may give arguments of a tool: a fixed one is sent with every call and clients know nothing of it; a
// default one is sent where the client gives none. Nothing else of the schema is touched.

// patchSchema makes an input schema tell what clients may give. The patch reads obj's schema and must be rendered before
// obj goes.
func patchSchema(p *wire.Patch, src []byte, obj *wire.Object, args []config.ArgumentOverride) {
	schema, ok := wire.ObjectAt(src, obj.Get(src, "inputSchema"))
	if !ok {
		return
	}
	props, _ := wire.ObjectAt(src, schema.Get(src, "properties"))
	for _, a := range args {
		if a.Fixed != nil {
			p.Remove(&props, a.Name)
		} else if one, ok := wire.ObjectAt(src, props.Get(src, a.Name)); ok {
			p.Set(&one, "default", a.Default)
		}
	}
	span := schema.Get(src, "required")
	all := wire.Elements(src, span)
	kept := slices.DeleteFunc(slices.Clone(all), func(e wire.Span) bool {
		name, ok := wire.DecodeString(e.Of(src))
		return ok && slices.ContainsFunc(args, func(a config.ArgumentOverride) bool { return a.Name == name })
	})
	switch {
	case len(kept) == len(all):
	case len(kept) == 0:
		p.Remove(&schema, "required")
	default:
		list := []byte{'['}
		for i, e := range kept {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, e.Of(src)...)
		}
		p.Replace(span, append(list, ']'))
	}
}

// unfixed are the annotated arguments that clients may give.
func unfixed(params []paramHeader, args []config.ArgumentOverride) []paramHeader {
	fixed := func(p paramHeader) bool {
		return slices.ContainsFunc(args, func(a config.ArgumentOverride) bool { return a.Fixed != nil && a.Name == p.path[0] })
	}
	if !slices.ContainsFunc(params, fixed) {
		return params
	}
	return slices.DeleteFunc(slices.Clone(params), fixed)
}

// givesFixed names an argument of the client that only the configuration may give. Some servers take names that differ in
// case for the same, and then the last of them, so these are no way around it either.
func (c *call) givesFixed(it *Item) string {
	if len(it.over.Arguments) == 0 {
		return ""
	}
	f := c.req.Frame
	given, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "arguments"))
	for _, a := range it.over.Arguments {
		if a.Fixed == nil {
			continue
		}
		for i := range given.Members {
			if name := memberName(f.Raw, &given.Members[i]); strings.EqualFold(name, a.Name) {
				return name
			}
		}
	}
	return ""
}

func memberName(raw []byte, m *wire.Member) string {
	name, _ := wire.DecodeString(m.Key.Of(raw))
	return name
}

// patchArguments adds the arguments that the configuration gives to the request.
func (c *call) patchArguments(p *wire.Patch) {
	over := c.item.over.Arguments
	if len(over) == 0 || c.method != "tools/call" {
		return
	}
	f := c.req.Frame
	given, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "arguments"))
	if !ok {
		p.Insert(&f.Body, "arguments", withArguments([]byte("{}"), over))
		return
	}
	for _, a := range missing(f.Raw, &given, over) {
		p.Insert(&given, a.name, a.value)
	}
}

// missing are the arguments of the configuration that a call lacks.
func missing(raw []byte, given *wire.Object, over []config.ArgumentOverride) (out []member) {
	for _, a := range over {
		switch {
		case a.Fixed != nil:
			out = append(out, member{a.Name, a.Fixed})
		case !given.Has(raw, a.Name):
			out = append(out, member{a.Name, a.Default})
		}
	}
	return out
}

// withArguments are the arguments that the upstream gets.
func withArguments(args []byte, over []config.ArgumentOverride) []byte {
	if len(over) == 0 {
		return args
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	given, _ := wire.ObjectAt(args, wire.Span{End: len(args)})
	var p wire.Patch
	p.Reset(args)
	for _, a := range missing(args, &given, over) {
		p.Insert(&given, a.name, a.value)
	}
	return p.Append(nil)
}
