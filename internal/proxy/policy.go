package proxy

import (
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy/allow"
)

// policies choose what is offered. Whatever a client does (list, search, call, read, watch, complete, follow a link)
// comes to this one place: by the items of its view, which have passed here, or by a URI that is asked about here.
type policies struct{ tools, prompts, resources config.Policy }

func policiesOf(s *config.Server) *policies {
	return &policies{s.ToolPolicy, s.PromptPolicy, s.ResourcePolicy}
}

// offers says whether an offer of an upstream is let through.
func (p *policies) offers(o *offer) bool {
	switch o.kind {
	case Tool:
		return allow.Name(p.tools, o.wire) && (len(p.tools.Effects) == 0 || slices.Contains(p.tools.Effects, o.effect()))
	case Prompt:
		return allow.Name(p.prompts, o.wire)
	case Template:
		return allow.Template(p.resources, o.wire)
	}
	return allow.URI(p.resources, o.wire)
}

// effect is what a tool does by its server's word. The word can only narrow what is offered.
func (o *offer) effect() config.Effect {
	if o.readOnly {
		return config.EffectReadOnly
	}
	return config.EffectSideEffect
}

// exposes says whether the configuration of an upstream lets an offer through.
func exposes(s *config.Server, o *offer) bool {
	return policiesOf(s).offers(o) && !(o.kind == Tool && s.Tools[o.wire].Disabled)
}

// permits says whether a view lets a URI of an upstream through, listed or not.
func (v *view) permits(s *config.Server, uri string) bool {
	return allow.URI(s.ResourcePolicy, uri) && allow.URI(v.policy.resources, uri)
}
