package proxy

import (
	"bytes"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// URIs are passed on as they are, since they also stand where nobody can rewrite them: in texts, in structured content.
// Where two upstreams have the same URI, the first in the order of the configuration keeps it. The other's is exposed
// in a qualified form: the upstream's name and a plus sign before the scheme, as in files+file:///etc/motd. It means the
// same in lists, reads, links, subscriptions and completion references.

// uriPrefix is what stands before the URIs of an upstream in the qualified form. It must begin a scheme (RFC 3986, 3.1).
func uriPrefix(id string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(id) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	s := b.String()
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		s = "s" + s
	}
	if s != id {
		s += "." + shortHash(id)
	}
	return s + "+"
}

// compiled is a template of a view with what it matches.
type compiled struct {
	item     *Item
	template *uritemplate.Template
	literal  int // characters that are not variable; the more, the more specific
}

func compileTemplate(it *Item) (compiled, bool) {
	t, err := uritemplate.New(it.Name)
	if err != nil {
		return compiled{}, false
	}
	n, depth := 0, 0
	for _, r := range it.Name {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case depth == 0:
			n++
		}
	}
	return compiled{it, t, n}, true
}

// match finds the template that a URI follows, the most specific first.
func (v *view) match(uri string) *Item {
	for _, c := range v.templates {
		if c.template.Match(uri) != nil {
			return c.item
		}
	}
	return nil
}

// resolveURI finds the upstream that a URI belongs to and what it is called there: by the list, by the templates, by the
// qualified form, and last by what links have told this principal. On the endpoint of one server all is that server's.
// What a policy hides belongs to nobody.
func (p *Proxy) resolveURI(c *Caller, uri string) *Item {
	v := p.view(c)
	it := p.ownerOf(v, c, uri)
	if it == nil || !v.permits(it.Upstream.Config(), it.Wire) {
		return nil
	}
	return it
}

func (p *Proxy) ownerOf(v *view, c *Caller, uri string) *Item {
	if it := v.find(Resource, uri); it != nil {
		return it
	}
	if it := v.match(uri); it != nil {
		return it.concrete(uri)
	}
	if u, rest := p.qualified(v, uri); u != nil {
		return &Item{Kind: Resource, Name: uri, Wire: rest, Upstream: u, offer: noOffer}
	}
	u := p.links.find(c.identity(), uri)
	if u != nil {
		u = p.ups.Get(u.ID) // another may have taken its place
	}
	if one := p.single(c.View); one != nil {
		u = one // whatever it is, nobody else can have it
	}
	if u != nil && v.has(u) {
		return &Item{Kind: Resource, Name: uri, Wire: uri, Upstream: u, offer: noOffer}
	}
	return nil
}

var noOffer = &offer{}

// concrete is the resource that a URI of a template stands for.
func (it *Item) concrete(uri string) *Item {
	out := &Item{Kind: Resource, Name: uri, Wire: uri, Upstream: it.Upstream, offer: noOffer}
	if it.Name != it.Wire {
		out.Wire = strings.TrimPrefix(uri, uriPrefix(it.Upstream.ID))
	}
	return out
}

// qualified takes the qualified form apart.
func (p *Proxy) qualified(v *view, uri string) (*upstream.Upstream, string) {
	head, _, ok := strings.Cut(uri, ":")
	if !ok || !strings.Contains(head, "+") {
		return nil, ""
	}
	for _, u := range v.ups {
		if rest, ok := strings.CutPrefix(uri, uriPrefix(u.ID)); ok {
			return u, rest
		}
	}
	return nil, ""
}

// exposeURI is what a URI of an upstream is called for a caller.
func (p *Proxy) exposeURI(c *Caller, u *upstream.Upstream, uri string) string {
	v := p.view(c)
	owner := v.find(Resource, uri)
	if owner == nil {
		owner = v.match(uri)
	}
	if owner == nil && p.links.learn(c.identity(), uri, u).ID == u.ID || owner != nil && owner.Upstream.ID == u.ID {
		return uri
	}
	return uriPrefix(u.ID) + uri
}

// exposeURIs rewrites the URIs of a result that belong to another upstream under the same name, and learns the others.
func (c *call) exposeURIs(p *wire.Patch, f *wire.Frame) {
	if !bytes.Contains(f.Raw, []byte(`"uri"`)) || strings.HasPrefix(c.req.Caller.View, ServerView("")) {
		return
	}
	switch c.method {
	case "tools/call":
		for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "content")) {
			c.exposeBlock(p, f, e)
		}
	case "prompts/get":
		for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "messages")) {
			if m, ok := wire.ObjectAt(f.Raw, e); ok {
				c.exposeBlock(p, f, m.Get(f.Raw, "content"))
			}
		}
	case "resources/read":
		for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, "contents")) {
			c.exposeMember(p, f, e)
		}
	}
}

// exposeBlock handles one content block: a link, or an embedded resource.
func (c *call) exposeBlock(p *wire.Patch, f *wire.Frame, block wire.Span) {
	obj, ok := wire.ObjectAt(f.Raw, block)
	if !ok {
		return
	}
	switch string(obj.Get(f.Raw, "type").Of(f.Raw)) {
	case `"resource_link"`:
		c.exposeMember(p, f, block)
	case `"resource"`:
		c.exposeMember(p, f, obj.Get(f.Raw, "resource"))
	}
}

func (c *call) exposeMember(p *wire.Patch, f *wire.Frame, in wire.Span) {
	obj, ok := wire.ObjectAt(f.Raw, in)
	if !ok {
		return
	}
	span := obj.Get(f.Raw, "uri")
	uri, ok := wire.DecodeString(span.Of(f.Raw))
	if !ok {
		return
	}
	var exposed string
	if c.method == "resources/read" && uri == c.item.Wire {
		exposed = c.item.Name // as it was asked for
	} else {
		exposed = c.p.exposeURI(c.req.Caller, c.item.Upstream, uri)
	}
	if exposed != uri {
		p.Replace(span, wire.AppendString(nil, exposed))
	}
}
