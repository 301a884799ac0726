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
				r.serverMistake(root, s, "forward_headers", "names proxy.auth.header, by which clients sign in here; it is never forwarded")
			}
		}
	}
}

// serverMistake is one that shows when everything has been read.
func (r *reader) serverMistake(root *node, s *Server, key, text string) {
	r.id = s.ID
	at, canon := r.rootOf(root), roots[0]
	if s.Agent != nil {
		at, canon = "agents", "agents"
	}
	o := r.origins[place{canon: canon}.member(member{key: s.ID}).member(member{key: key}).canon]
	r.mistake(place{path: joinPath(joinPath(at, s.ID), key)}, o.line, "%s", text)
	r.id = ""
}
