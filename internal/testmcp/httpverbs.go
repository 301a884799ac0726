package testmcp

import (
	"net/http"
	"strconv"
	"strings"
)

func (h *HTTPServer) post(in *Instance, w http.ResponseWriter, r *http.Request, body []byte) {
	m := parseMessage(body)
	s := h.sessionFor(in, w, r, m)
	if s == nil {
		return
	}
	if s.label == modernConn {
		defer in.dropSession(s.session)
	}
	c := s.request(in.ctx, m, r.Header.Clone())
	s.seen(m, r.Header.Clone())
	switch m.kind() {
	case messageUnreadable:
		Status(http.StatusBadRequest, "application/json",
			`{"jsonrpc":"2.0","id":null,"error":{"code":`+strconv.Itoa(codeParse)+`,"message":"unreadable message"}}`)(w, r)
	case messageRequest:
		h.request(s, w, r, c)
	default:
		s.take(m, r.Header.Clone())
		h.addHeaders(w.Header(), r)
		if h.opt.Notified != nil {
			h.opt.Notified(w, r)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// Texts of the notes about POSTs that were refused before anything read them.
const (
	RefusedNoSession = "refused: no session id"
	RefusedLost      = "refused: unknown session"
)

func isModern(m Message, r *http.Request) bool {
	return m.Method == "server/discover" || m.Params.Has("_meta", metaVersion) || r.Header.Get("Mcp-Protocol-Version") >= Rev2607
}

// sessionFor finds or makes the conversation of a POST; nil when the request has been refused.
func (h *HTTPServer) sessionFor(in *Instance, w http.ResponseWriter, r *http.Request, m Message) *httpSession {
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case h.srv.Era.modern() && isModern(m, r): // to a legacy server this is a request without a session
		return newHTTPSession(in, modernConn)
	case h.opt.NoSessions:
		return h.stateless(in)
	case m.Method == "initialize":
		return h.newSession(in, w)
	case id == "":
		in.record(Record{Kind: Note, Text: RefusedNoSession, Method: m.Method, Frame: m.Raw})
		Status(http.StatusBadRequest, "text/plain", "Bad Request: Mcp-Session-Id header is required")(w, r)
		return nil
	}
	s := h.find(id)
	if s == nil || m.Method == "tools/call" && h.spent(s) {
		in.record(Record{Kind: Note, Text: RefusedLost, Method: m.Method, Conn: id, Frame: m.Raw})
		h.lost(w, r)
		return nil
	}
	return s
}

func (h *HTTPServer) newSession(in *Instance, w http.ResponseWriter) *httpSession {
	id := newSessionID()
	s := newHTTPSession(in, id)
	h.mu.Lock()
	h.sessions[id] = s
	h.mu.Unlock()
	w.Header().Set("Mcp-Session-Id", id)
	return s
}

func (h *HTTPServer) stateless(in *Instance) *httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[statelessConn] == nil {
		h.sessions[statelessConn] = newHTTPSession(in, statelessConn)
	}
	return h.sessions[statelessConn]
}

func (h *HTTPServer) find(id string) *httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// spent counts a call and forgets the session when it has had as many as it may.
func (h *HTTPServer) spent(s *httpSession) bool {
	if h.opt.LoseAfter == 0 || s.callsTool() <= h.opt.LoseAfter {
		return false
	}
	h.mu.Lock()
	delete(h.sessions, s.label)
	h.mu.Unlock()
	s.end()
	return true
}

// request runs the handler beside the response, so that a legacy call outlives its client's connection.
func (h *HTTPServer) request(s *httpSession, w http.ResponseWriter, r *http.Request, c *Call) {
	st := s.newStream()
	c.stream = st
	s.in.wg.Go(c.run)
	f := &follower{h: h, w: w, r: r, st: st, modern: s.label == modernConn, form: h.opt.Answers}
	if !h.opt.Resumable {
		defer s.dropStream(st)
	}
	if f.run(0) {
		return
	}
	s.in.record(Record{Kind: Closed, Conn: s.label, ID: c.ID, Method: c.Method, Text: "response stream"})
	if f.modern { // closing the response is how a modern client cancels; a legacy one may come back
		c.end(ErrStreamClosed)
	}
}

func (h *HTTPServer) get(in *Instance, w http.ResponseWriter, r *http.Request) {
	s := h.find(r.Header.Get("Mcp-Session-Id"))
	switch {
	case h.opt.Get != nil:
		h.opt.Get(w, r)
	case !h.srv.Era.legacy() || h.opt.NoSessions || r.Header.Get("Mcp-Session-Id") == "":
		w.Header().Set("Allow", "POST")
		Status(http.StatusMethodNotAllowed, "", "")(w, r)
	case s == nil:
		h.lost(w, r)
	default:
		st, from := h.getStream(s, r.Header.Get("Last-Event-ID"))
		defer s.closeGet(st)
		if !h.opt.Resumable {
			defer s.dropStream(st)
		}
		h.keepOpen(in, &follower{h: h, w: w, r: r, st: st, form: AsEvents}, s.label, from)
	}
}

// keepOpen follows a stream of unrelated messages and records its end.
func (h *HTTPServer) keepOpen(in *Instance, f *follower, label string, from int) {
	if !f.run(from) {
		in.record(Record{Kind: Closed, Conn: label, Text: "GET stream"})
	}
}

// getStream gives the stream to follow from there on: the one that an event id names, else a new one.
func (h *HTTPServer) getStream(s *httpSession, lastEvent string) (st *stream, from int) {
	name, number, found := strings.Cut(lastEvent, ".")
	if h.opt.Resumable && found {
		if st := s.byName(name); st != nil {
			n, _ := strconv.Atoi(number)
			return st, n + 1
		}
	}
	return s.openGet(), 0
}

func (h *HTTPServer) delete(in *Instance, w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	s := h.find(id)
	if s == nil {
		h.lost(w, r)
		return
	}
	h.mu.Lock()
	delete(h.sessions, id)
	h.mu.Unlock()
	in.record(Record{Kind: Deleted, Conn: id})
	s.end()
	w.WriteHeader(http.StatusNoContent)
}
