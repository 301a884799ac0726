package session

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Header names, in the canonical form.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// ServeHTTP serves one HTTP request to an MCP endpoint with this view, for this principal.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request, view, principal string) {
	switch r.Method {
	case http.MethodPost:
		m.post(w, r, view, principal)
	case http.MethodGet, http.MethodDelete:
		m.getOrDelete(w, r, view, principal)
	default:
		methodNotAllowed(w)
	}
}

// refuse answers an HTTP request with a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, a proxy.Answer) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(a.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(a.Bytes())
}

func invalidRequest(w http.ResponseWriter, status int, id []byte, text string) {
	refuse(w, status, proxy.Failure(id, wire.CodeInvalidRequest, text, nil))
}

func methodNotAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE, OPTIONS")
	invalidRequest(w, http.StatusMethodNotAllowed, nil, "this method needs a session: send the header Mcp-Session-Id of a session that initialize has opened")
}

// post serves a message, or a batch of the revision that has batches.
func (m *Manager) post(w http.ResponseWriter, r *http.Request, view, principal string) {
	if !isJSON(r.Header) {
		invalidRequest(w, http.StatusUnsupportedMediaType, nil, "Content-Type must be application/json")
		return
	}
	accept := accepted(r.Header)
	if !accept.json && !accept.stream {
		invalidRequest(w, http.StatusNotAcceptable, nil, "Accept must name application/json, text/event-stream or both")
		return
	}
	body, err := readBody(r)
	if err != nil {
		m.refuseBody(w, err)
		return
	}
	p := &poster{m: m, w: w, r: r, view: view, principal: principal, accept: accept}
	if wire.IsBatch(body) {
		p.batch(body)
		return
	}
	f := wire.GetFrame()
	defer wire.PutFrame(f)
	if err := wire.ParseInto(f, body, wire.Downstream, m.limits); err != nil {
		m.refuseFrame(w, err)
		return
	}
	p.one(f)
}

// readBody reads the whole body; its length is bounded by the door.
func readBody(r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n >= 0 && n <= 16<<20 {
		b := wire.GetBuffer(int(n))
		_, err := io.ReadFull(r.Body, b)
		return b, err
	}
	return io.ReadAll(r.Body)
}

func (m *Manager) refuseBody(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		text := "the body is over the limit of " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes (limits.max_body_bytes)"
		invalidRequest(w, http.StatusRequestEntityTooLarge, nil, text)
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		invalidRequest(w, http.StatusRequestTimeout, nil, "the body was sent too slowly")
		return
	}
	invalidRequest(w, http.StatusBadRequest, nil, "the body could not be read: "+err.Error())
}

// refuseFrame answers a body that is no message.
func (m *Manager) refuseFrame(w http.ResponseWriter, err error) {
	a := m.parseFailure(err)
	refuse(w, http.StatusBadRequest, a)
}

func (m *Manager) parseFailure(err error) proxy.Answer {
	var pe *wire.ParseError
	if !errors.As(err, &pe) {
		return proxy.Failure(nil, wire.CodeParse, err.Error(), nil)
	}
	switch pe.Reason {
	case wire.ReasonTooDeep:
		m.count.Limit(count.LimitDepth)
	case wire.ReasonTooManyMembers:
		m.count.Limit(count.LimitMembers)
	}
	return proxy.Failure(pe.ID, pe.Code, pe.Error(), nil)
}

// getOrDelete serves what only a legacy session has: its standing stream and its end.
func (m *Manager) getOrDelete(w http.ResponseWriter, r *http.Request, view, principal string) {
	id := r.Header.Get(headerSession)
	if id == "" || !m.stateful() || wire.LooksModern(r.Header.Get(headerVersion)) {
		methodNotAllowed(w)
		return
	}
	if r.Method == http.MethodDelete {
		if m.end(id, view, principal) != nil {
			sessionNotFound(w, nil)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	p := &poster{m: m, w: w, r: r, view: view, principal: principal, accept: accepted(r.Header)}
	s, ok := p.session(nil)
	if !ok {
		return
	}
	defer s.release()
	m.stand(w, r, s)
}

func sessionNotFound(w http.ResponseWriter, id []byte) {
	invalidRequest(w, http.StatusNotFound, id, "no such session; send initialize without Mcp-Session-Id to open a new one")
}

// versionHeaderOK says whether the version header of a legacy request is one that we know; absent is fine.
func versionHeaderOK(h http.Header) bool {
	v := h.Get(headerVersion)
	return v == "" || wire.IsLegacy(v)
}
