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

const authorization = "Authorization"

// ForwardsAuth says whether the server gets the client's Authorization: a credential of its own wins over it.
func (s *Server) ForwardsAuth() bool {
	return s.ForwardCallerAuth && s.Transport != TransportStdio && !s.hasCredential()
}

func (s *Server) hasCredential() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, authorization) {
			return true
		}
	}
	return s.AuthToken != "" || strings.EqualFold(s.SignIn.header(), authorization)
}

// callersOwn settles what depends on the credentials of callers.
func (r *reader) callersOwn(at place, entry *node, d *draft) {
	if m := entry.get("forward_caller_auth"); d.ForwardCallerAuth {
		switch {
		case d.Transport == TransportStdio:
			r.mistake(at.member(*m), m.line, "a program gets no headers; name what it needs of the client's in forward_headers, which come to it as forwarded_headers in _meta, and give it a credential of its own in env")
		case d.hasCredential():
			r.warn(at.member(*m), m.line, "has no effect: the credential of the entry itself wins")
		}
	}
	m := entry.get("catalog_scope")
	switch {
	case d.CatalogScope == "" && d.ForwardsAuth():
		d.CatalogScope = ScopePrincipal
	case d.CatalogScope == "":
		d.CatalogScope = ScopeGlobal
	case d.CatalogScope == ScopePrincipal && !d.ForwardsAuth() && len(d.ForwardHeaders) == 0:
		r.mistake(at.member(*m), m.line, "needs something of the client's that the lists can depend on: forward_caller_auth or forward_headers")
	case d.CatalogScope == ScopeSession && d.Sharing != SharingSession:
		r.mistake(at.member(*m), m.line, "needs sharing: session, so that a session has a connection of its own")
	}
}

// checkForwards puts the names into one form, and refuses the header by which clients sign in here.
func (r *reader) checkForwards(root *node, cfg *Config) {
	for _, s := range cfg.Servers {
		if s.ForwardCallerAuth && cfg.Proxy.Auth.Mode != AuthNone && strings.EqualFold(cfg.Proxy.Auth.Header, authorization) {
			r.serverMistake(root, s, "forward_caller_auth", "needs the header Authorization, by which clients sign in here; choose another proxy.auth.header, for example \"X-Proxy-Token\"")
		}
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
