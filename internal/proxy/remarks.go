package proxy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy/allow"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Remarks tells what an operator should know of an upstream: questions that had no place to wait for their answers, and
// what the configuration says of it that fits nothing of what it offers. Of that there is none before it has been listed.
func (p *Proxy) Remarks(id string) (out []string) {
	u, l := p.ups.Get(id), p.catalog.listing(id)
	if u == nil {
		return nil
	}
	if text := p.parked.remark(u.Config()); text != "" {
		out = append(out, text)
	}
	if l == nil || l.partial != nil {
		return out
	}
	return append(out, misfits(u.Config(), l)...)
}

// misfits are what fits nothing: probably a name is misspelt, and something is not hidden, or not fixed, that was meant to
// be.
func misfits(c *config.Server, l *listing) []string {
	out := append(unmatched("tool_policy", c.ToolPolicy, l.offers[Tool]), unmatched("prompt_policy", c.PromptPolicy, l.offers[Prompt])...)
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		at := slices.IndexFunc(l.offers[Tool], func(o *offer) bool { return o.wire == name })
		if at < 0 {
			out = append(out, fmt.Sprintf("tools: the server has no tool %q", name))
			continue
		}
		out = append(out, unknownArguments(l.offers[Tool][at], c.Tools[name].Arguments)...)
	}
	return out
}

// unmatched gives the patterns of a policy that match nothing.
func unmatched(key string, p config.Policy, offers []*offer) (out []string) {
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"expose", p.Expose}, {"deny", p.Deny}} {
		for _, pattern := range list.patterns {
			if !slices.ContainsFunc(offers, func(o *offer) bool { return allow.Matches(pattern, o.wire) }) {
				out = append(out, fmt.Sprintf("%s.%s: nothing of the server is called %q", key, list.key, pattern))
			}
		}
	}
	return out
}

// unknownArguments gives the arguments that the configuration gives and the schema does not name.
func unknownArguments(o *offer, args []config.ArgumentOverride) (out []string) {
	schema, _ := wire.ObjectAt(o.raw, o.obj.Get(o.raw, "inputSchema"))
	props, ok := wire.ObjectAt(o.raw, schema.Get(o.raw, "properties"))
	for _, a := range args {
		if ok && !props.Has(o.raw, a.Name) {
			out = append(out, fmt.Sprintf("tools: the schema of %q names no argument %q", o.wire, a.Name))
		}
	}
	return out
}
