// Package allow tells what a policy lets through: names, URIs in whatever spelling, and URI templates. It knows the texts
// alone, and nothing of what they name.
package allow

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Name says whether a policy lets a wire name through: deny wins, and an empty expose lets all through.
func Name(p config.Policy, name string) bool {
	return !MatchesAny(p.Deny, name) && (len(p.Expose) == 0 || MatchesAny(p.Expose, name))
}

// MatchesAny says whether one of some patterns matches a name.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, name) })
}

// URI judges a URI as it is written and in every form that a server may take it for, so that no other spelling leads
// around a policy: what is denied is denied in all of them. What is exposed must be so as it is written and in its plain
// form, and in all of them where the URI climbs, since servers disagree on how far.
func URI(p config.Policy, uri string) bool {
	if len(p.Deny) == 0 && len(p.Expose) == 0 {
		return true
	}
	must := []string{uri, plainURI(uri)}
	others, climbs := readings(uri)
	all := slices.Concat(must, others)
	if slices.ContainsFunc(all, func(form string) bool { return MatchesAny(p.Deny, form) }) {
		return false
	}
	if climbs {
		must = all
	}
	return len(p.Expose) == 0 || !slices.ContainsFunc(must, func(form string) bool { return !MatchesAny(p.Expose, form) })
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

// Template says whether a template may stand for a URI that a policy lets through. Each URI is judged when it is read.
func Template(p config.Policy, template string) bool {
	if MatchesAny(p.Deny, template) {
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
