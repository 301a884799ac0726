package session

import (
	"net/http"
	"time"

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
	if a, asks := p.m.proxy.Asks(&proxy.Caller{Era: wire.Legacy, View: p.view, Principal: p.principal, Headers: p.r.Header}, id, f.Method); asks {
		p.m.newExchange(p.w, p.accept).finish(&a, http.StatusOK)
		return
	}
	version := negotiate(asked)
	if p.m.stateful() {
		s, err := p.m.openSession(p.view, p.principal, version, proxy.ParseCaps(f.Body.Get(f.Raw, "capabilities").Of(f.Raw)))
		if err != nil {
			p.manySessions(id)
			return
		}
		defer s.release()
		p.w.Header()[headerSession] = []string{s.id}
	}
	a := proxy.Result(id, p.m.initializeResult(version, p.view))
	x := p.m.newExchange(p.w, p.accept)
	x.finish(&a, http.StatusOK)
}

// openSession makes a session and holds it.
func (m *Manager) openSession(view, principal, version string, caps proxy.Caps) (*session, error) {
	now := time.Now()
	c := claims{version: version, caps: caps, issued: now, expires: now.Add(m.opt.Sessions.MaxAge), unique: newUnique()}
	s, _, err := m.admit(newSession(m.seal.seal(c, view, principal), view, principal, c))
	return s, err
}

// manySessions refuses a request for whose session there is no room.
func (p *poster) manySessions(id []byte) {
	p.w.Header().Set("Retry-After", "60")
	refuse(p.w, http.StatusServiceUnavailable, proxy.Failure(id, wire.CodeInternal, errManySessions.Error(), nil))
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
	b = append(append(b, `,"serverInfo":`...), m.proxy.ServerInfo(view)...)
	if text := m.proxy.Instructions(view); text != "" {
		b = wire.AppendString(append(b, `,"instructions":`...), text)
	}
	return append(b, '}')
}
