package session

import (
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// stateful says whether legacy clients get sessions. Without them, for clients that lose their id, invent one or send
// that of another server, any id is good and each request is served by itself: the client cannot be asked anything, has
// no stream for news, cannot cancel and cannot come back for an answer.
func (m *Manager) stateful() bool { return m.opt.Sessions.Mode != config.SessionsStateless }

// standsAlone is the session of one request where there are no sessions. Without a version header the request is of the
// revision that had none (2025-11-25, transports, "Protocol Version Header").
func (p *poster) standsAlone() *session {
	version := p.r.Header.Get(headerVersion)
	if version == "" {
		version = wire.Rev20250326
	}
	s := newSession("", p.view, p.principal, claims{version: version})
	s.caller.Unit = "" // nobody in particular: upstreams that are not shared give the request a connection of its own
	s.hold()
	return s
}

// alone says whether the session is that of one request.
func (s *session) alone() bool { return s.id == "" }
