package session

import (
	"net/http"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// initialize opens a legacy session. It waits for no upstream. A stale session id that comes with it is ignored.
func (p *poster) initialize(f *wire.Frame) {
	id := f.ID.Of(f.Raw)
	if p.m.Draining() {
		p.drainRefused(id)
		return
	}
	asked, ok := wire.DecodeString(f.Body.Get(f.Raw, "protocolVersion").Of(f.Raw))
	if !ok {
		refuse(p.w, http.StatusOK, proxy.Failure(id, wire.CodeInvalidParams, "initialize: params.protocolVersion must be a string", nil))
		return
	}
	s := newSession(p.view, p.principal, negotiate(asked), proxy.ParseCaps(f.Body.Get(f.Raw, "capabilities").Of(f.Raw)))
	if !p.m.admit(s) {
		p.w.Header().Set("Retry-After", "60")
		refuse(p.w, http.StatusServiceUnavailable, proxy.Failure(id, wire.CodeInternal, "too many sessions are in use (limits.max_sessions)", nil))
		return
	}
	a := proxy.Result(id, p.m.initializeResult(s.version, s.view))
	p.w.Header()[headerSession] = []string{s.id}
	x := p.m.newExchange(p.w, p.accept, nil)
	x.finish(&a, http.StatusOK)
}

// negotiate gives the revision to speak: the client's, or the newest with a handshake where we do not know it. It is
// never an error (2025-11-25, lifecycle, "Version Negotiation").
func negotiate(asked string) string {
	if wire.IsLegacy(asked) {
		return asked
	}
	return wire.LatestLegacy
}

// initializeResult is the answer to initialize for a client of this view that speaks this revision from now on.
func (m *Manager) initializeResult(version, view string) []byte {
	b := wire.AppendString([]byte(`{"protocolVersion":`), version)
	b = append(append(b, `,"capabilities":`...), m.proxy.Capabilities(view)...)
	b = append(append(b, `,"serverInfo":`...), m.proxy.ServerInfo()...)
	if text := m.proxy.Instructions(view); text != "" {
		b = wire.AppendString(append(b, `,"instructions":`...), text)
	}
	return append(b, '}')
}

// admit keeps a new session. Over the bound the session that has been idle for longest makes room.
func (m *Manager) admit(s *session) bool {
	m.mu.Lock()
	var out *session
	if len(m.sessions) >= m.opt.Limits.MaxSessions {
		m.count.Limit(count.LimitSessions)
		if out = m.idlest(); out == nil {
			m.mu.Unlock()
			return false
		}
		delete(m.sessions, out.id)
	}
	m.sessions[s.id] = s
	m.mu.Unlock()
	if out != nil {
		out.close()
		m.opt.Ended(out.unit)
	}
	return true
}

// idlest finds the session that has been without any use for longest. m.mu is held.
func (m *Manager) idlest() (out *session) {
	var since time.Time
	for _, s := range m.sessions {
		s.mu.Lock()
		if s.idle() && (out == nil || s.lastUse.Before(since)) {
			out, since = s, s.lastUse
		}
		s.mu.Unlock()
	}
	return out
}
