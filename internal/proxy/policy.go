package proxy

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
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
		return allows(p.tools, o.wire) && (len(p.tools.Effects) == 0 || slices.Contains(p.tools.Effects, o.effect()))
	case Prompt:
		return allows(p.prompts, o.wire)
	case Template:
		return allowsTemplate(p.resources, o.wire)
	}
	return allowsURI(p.resources, o.wire)
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
	return allowsURI(s.ResourcePolicy, uri) && allowsURI(v.policy.resources, uri)
}

// allows says whether a policy lets a wire name through: deny wins, and an empty expose lets all through.
func allows(p config.Policy, name string) bool {
	return !matchesAny(p.Deny, name) && (len(p.Expose) == 0 || matchesAny(p.Expose, name))
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchGlob(pattern, name) })
}

// allowsURI judges a URI as it is written and in every form that a server may take it for, so that no other spelling leads
// around a policy: what is denied is denied in all of them. What is exposed must be so as it is written and in its plain
// form, and in all of them where the URI climbs, since servers disagree on how far.
func allowsURI(p config.Policy, uri string) bool {
	if len(p.Deny) == 0 && len(p.Expose) == 0 {
		return true
	}
	must := []string{uri, plainURI(uri)}
	others, climbs := readings(uri)
	all := slices.Concat(must, others)
	if slices.ContainsFunc(all, func(form string) bool { return matchesAny(p.Deny, form) }) {
		return false
	}
	if climbs {
		must = all
	}
	return len(p.Expose) == 0 || !slices.ContainsFunc(must, func(form string) bool { return !matchesAny(p.Expose, form) })
}

// plainURI is the form of a URI without what may be written in several ways (RFC 3986, 6.2.2). What has no scheme is no
// URI, and stays as it is.
func plainURI(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" {
		return uri
	}
	scheme := strings.ToLower(u.Scheme)
	if u.Opaque != "" {
		if plain, err := url.PathUnescape(u.Opaque); err == nil {
			return scheme + ":" + plain
		}
		return uri
	}
	plain := scheme + "://" + strings.ToLower(u.Host)
	if clean := path.Clean(u.Path); u.Path != "" {
		if strings.HasSuffix(u.Path, "/") && clean != "/" {
			clean += "/"
		}
		plain += clean
	}
	if u.RawQuery != "" {
		plain += "?" + u.RawQuery
	}
	return plain
}

// allowsTemplate says whether a template may stand for a URI that a policy lets through. Each URI is judged when it is read.
func allowsTemplate(p config.Policy, template string) bool {
	if matchesAny(p.Deny, template) {
		return false
	}
	shape := templateShape(template)
	return len(p.Expose) == 0 || slices.ContainsFunc(p.Expose, func(pattern string) bool { return overlap(pattern, shape) })
}

// templateShape is a glob of what a URI template stands for.
func templateShape(template string) string {
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(template, "{")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		b.WriteByte('*')
		if _, template, ok = strings.Cut(rest, "}"); !ok {
			return b.String()
		}
	}
}
