package proxy

import (
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Caps are the capabilities of a client that the proxy knows how to bring questions to. Bits, because a session id
// carries them; their values must not change.
type Caps uint16

// The capabilities.
const (
	CapElicitForm Caps = 1 << iota
	CapElicitURL
	CapSampling
	CapSamplingTools
	CapSamplingContext
	CapRoots
	CapRootsListChanged
	CapTasks // the tasks extension of the modern era
)

// ParseCaps reads a capabilities object of a client of either era. An elicitation object that names no mode means forms
// (2025-06-18 knew nothing else).
func ParseCaps(raw []byte) Caps {
	var c Caps
	root, _ := wire.ObjectAt(raw, wire.Span{End: len(raw)})
	has := func(o *wire.Object, name string) (wire.Object, bool) {
		return wire.ObjectAt(raw, o.Get(raw, name))
	}
	if e, ok := has(&root, "elicitation"); ok {
		url := e.Has(raw, "url")
		if e.Has(raw, "form") || !url {
			c |= CapElicitForm
		}
		if url {
			c |= CapElicitURL
		}
	}
	if s, ok := has(&root, "sampling"); ok {
		c |= CapSampling
		if s.Has(raw, "tools") {
			c |= CapSamplingTools
		}
		if s.Has(raw, "context") {
			c |= CapSamplingContext
		}
	}
	if r, ok := has(&root, "roots"); ok {
		c |= CapRoots
		if string(r.Get(raw, "listChanged").Of(raw)) == "true" {
			c |= CapRootsListChanged
		}
	}
	if x, ok := has(&root, "extensions"); ok && x.Has(raw, tasksExtension) {
		c |= CapTasks
	}
	return c
}

const tasksExtension = upstream.TasksExtension

// modern is the capabilities object that a modern upstream is told in a request for this client.
func (c Caps) modern() []byte {
	out := c.common("{}")
	if c&CapTasks != 0 {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"extensions":{"`+tasksExtension+`":{}}`...)
	}
	return append(out, '}')
}

// legacy is the capabilities object that a legacy upstream is told on a connection of this client's own.
func (c Caps) legacy() []byte {
	roots := "{}"
	if c&CapRootsListChanged != 0 {
		roots = `{"listChanged":true}`
	}
	return append(c.common(roots), '}')
}

// common is what both eras have, without the end of the object.
func (c Caps) common(roots string) []byte {
	out := []byte{'{'}
	add := func(name, value string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, `"`+name+`":`+value...)
	}
	if c&(CapElicitForm|CapElicitURL) != 0 {
		add("elicitation", c.members(CapElicitForm, "form", CapElicitURL, "url"))
	}
	if c&CapSampling != 0 {
		add("sampling", c.members(CapSamplingTools, "tools", CapSamplingContext, "context"))
	}
	if c&CapRoots != 0 {
		add("roots", roots)
	}
	return out
}

func (c Caps) members(a Caps, nameA string, b Caps, nameB string) string {
	switch {
	case c&a != 0 && c&b != 0:
		return `{"` + nameA + `":{},"` + nameB + `":{}}`
	case c&a != 0:
		return `{"` + nameA + `":{}}`
	case c&b != 0:
		return `{"` + nameB + `":{}}`
	}
	return "{}"
}
