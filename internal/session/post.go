package session

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// poster is one POST under way.
type poster struct {
	m         *Manager
	w         http.ResponseWriter
	r         *http.Request
	view      string
	principal string
	accept    acceptance
}

// one serves a single message. Its era is told by what it carries, never by what came before
// (2026-07-28, versioning: one endpoint may serve both eras).
func (p *poster) one(f *wire.Frame) {
	header := p.r.Header.Get(headerVersion)
	if wire.LooksModern(header) || f.Meta.Has(f.Raw, wire.MetaProtocolVersion) {
		p.modern(f, header)
		return
	}
	if f.Kind == wire.KindRequest && f.Method == "initialize" {
		p.initialize(f)
		return
	}
	s, ok := p.session(f.ID.Of(f.Raw))
	if !ok {
		return
	}
	defer s.release()
	switch f.Kind {
	case wire.KindRequest:
		p.legacyRequest(s, f)
	case wire.KindNotification:
		p.m.notified(s, f)
		p.w.WriteHeader(http.StatusAccepted)
	default:
		p.m.answered(s, f)
		p.w.WriteHeader(http.StatusAccepted)
	}
}

// session finds the session of a legacy request, or refuses it. Whoever gets one releases it.
func (p *poster) session(id []byte) (*session, bool) {
	if !versionHeaderOK(p.r.Header) {
		invalidRequest(p.w, http.StatusBadRequest, id, "the header MCP-Protocol-Version names no revision that this server speaks")
		return nil, false
	}
	if !p.m.stateful() {
		return p.standsAlone(), true
	}
	name := p.r.Header.Get(headerSession)
	if name == "" {
		invalidRequest(p.w, http.StatusBadRequest, id, "the header Mcp-Session-Id is missing; send initialize first and repeat the id that it brings")
		return nil, false
	}
	s, err := p.m.hold(name, p.view, p.principal)
	switch {
	case errors.Is(err, errManySessions):
		p.manySessions(id)
		return nil, false
	case err != nil:
		sessionNotFound(p.w, id)
		return nil, false
	}
	return s, true
}

// notified handles a notification of a legacy client.
func (m *Manager) notified(s *session, f *wire.Frame) {
	switch f.Method {
	case "notifications/cancelled":
		if id := f.Body.Get(f.Raw, "requestId"); wire.ValidID(id.Of(f.Raw)) {
			s.cancel(wire.IDKey(id.Of(f.Raw)))
		}
	case "notifications/roots/list_changed":
		m.proxy.RootsChanged(s.caller)
	}
}

// drainRefused refuses a request while we are stopping.
func (p *poster) drainRefused(id []byte) {
	p.w.Header().Set("Retry-After", "5")
	refuse(p.w, http.StatusServiceUnavailable, proxy.Failure(id, wire.CodeInternal, "the proxy is stopping", nil))
}

// exchange begins the response to requests of a session. A client whose connection is lost has the time to come back;
// then cancel ends what it asked for. tooLarge is kept for it where there is no room for the answer. What is returned
// beside the exchange ends the watch over the connection.
func (p *poster) exchange(s *session, cancel context.CancelCauseFunc, tooLarge func() []byte) (x *exchange, stop func() bool) {
	x = p.m.newSessionExchange(p, s, func() { cancel(proxy.CauseClientGone) }, tooLarge)
	return x, context.AfterFunc(p.r.Context(), func() { x.lost(&x.post) })
}

// answerTooLarge is the answer for a client that comes back for one which could not be kept.
func answerTooLarge(id []byte) []byte {
	a := proxy.Failure(id, wire.CodeInternal, "the connection was lost before the answer had arrived, and the answer is too large to be kept (sessions.resume_buffer_bytes)", nil)
	return a.Bytes()
}

// legacyRequest runs a request of a session. The call lives on when the client's connection is lost, for as long as the
// client may come back (2025-11-25, transports: a disconnect is no cancel).
func (p *poster) legacyRequest(s *session, f *wire.Frame) {
	if !p.m.begin() {
		p.drainRefused(f.ID.Of(f.Raw))
		return
	}
	defer p.m.calls.Done()
	ctx, cancel := context.WithCancelCause(p.m.base)
	defer cancel(nil)
	key := wire.IDKey(f.ID.Of(f.Raw))
	r := s.enter(key, cancel)
	defer s.leave(key, r)
	x, stop := p.exchange(s, cancel, func() []byte { return answerTooLarge(f.ID.Of(f.Raw)) })
	defer stop()
	a := p.m.proxy.Handle(ctx, cancel, p.request(s, f, x))
	if a.Ended {
		x.finishSilently(f.ID.Of(f.Raw))
		return
	}
	x.finish(&a, http.StatusOK)
	a.Release()
}

// request is one of a session, with what its state and this POST add.
func (p *poster) request(s *session, f *wire.Frame, x proxy.Sink) *proxy.Request {
	caller := *s.caller
	caller.Headers = p.r.Header
	return s.state.request(p.m.proxy, &caller, s.unread, f, x)
}
