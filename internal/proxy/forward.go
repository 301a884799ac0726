package proxy

import (
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// forwardedMember is where headers stand for upstreams that have none of their own.
const forwardedMember = "forwarded_headers"

// forwardedHeaders are the headers of the client's request that the configuration passes on to this upstream.
func (c *call) forwardedHeaders() map[string][]string {
	var h map[string][]string
	for _, name := range c.item.Upstream.Config().ForwardHeaders {
		if v := c.req.Caller.Headers[name]; len(v) > 0 {
			if h == nil {
				h = map[string][]string{}
			}
			h[name] = v
		}
	}
	return h
}

// forwarded puts them into _meta for an upstream without HTTP. What the client itself wrote there goes: the upstream may
// rely on headers that only a reverse proxy before us sets.
func (c *call) forwarded(p *wire.Patch, add []member) []member {
	cfg := c.item.Upstream.Config()
	if len(cfg.ForwardHeaders) == 0 || cfg.URL != "" {
		return add
	}
	p.Remove(&c.req.Frame.Meta, forwardedMember)
	h := c.forwardedHeaders()
	if h == nil {
		return add
	}
	return append(add, member{forwardedMember, forwardedObject(cfg.ForwardHeaders, h)})
}

// forwardedObject is how headers stand in _meta: their names in lower case, several values in one text.
func forwardedObject(names []string, h map[string][]string) []byte {
	obj := []byte{'{'}
	for i, name := range names {
		if v := h[name]; len(v) > 0 && !slices.Contains(names[:i], name) {
			if len(obj) > 1 {
				obj = append(obj, ',')
			}
			obj = append(wire.AppendString(obj, strings.ToLower(name)), ':')
			obj = wire.AppendString(obj, strings.Join(v, ", "))
		}
	}
	return append(obj, '}')
}
