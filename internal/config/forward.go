package config

import (
	"net/textproto"
	"slices"
	"strings"
)

// neverForwarded are headers that sign somebody in, or belong to one connection or to the protocol.
var neverForwarded = []string{
	"authorization", "proxy-authorization", "proxy-authenticate", "cookie", "set-cookie", "host", "origin", "connection",
	"keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "content-type", "content-encoding",
	"accept", "accept-encoding", "last-event-id",
}

// isForwardable accepts headers that may be passed on from a client to a server.
func isForwardable(s string) string {
	if wrong := isHeaderName(s); wrong != "" {
		return wrong
	}
	if low := strings.ToLower(s); slices.Contains(neverForwarded, low) || strings.HasPrefix(low, "mcp-") {
		return "cannot be forwarded: it is a credential, or belongs to the protocol or to one connection"
	}
	return ""
}

// checkForwards puts the names into one form, and refuses the header by which clients sign in here.
func (r *reader) checkForwards(root *node, cfg *Config) {
	for _, s := range cfg.Servers {
		for i, name := range s.ForwardHeaders {
			s.ForwardHeaders[i] = textproto.CanonicalMIMEHeaderKey(name)
			if cfg.Proxy.Auth.Mode != AuthNone && strings.EqualFold(name, cfg.Proxy.Auth.Header) {
				r.serverMistake(root, s.ID, "forward_headers", "names proxy.auth.header, by which clients sign in here; it is never forwarded")
			}
		}
	}
}

// serverMistake is one that shows when everything has been read.
func (r *reader) serverMistake(root *node, id, key, text string) {
	r.id = id
	canon := place{canon: roots[0]}.member(member{key: id})
	o := r.origins[canon.member(member{key: key}).canon]
	r.mistake(place{path: joinPath(joinPath(r.rootOf(root), id), key)}, o.line, "%s", text)
	r.id = ""
}
