package testmcp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// SSEOptions say how a Server is served over the HTTP+SSE transport of 2024-11-05, and in what that errs.
type SSEOptions struct {
	Recorder *Recorder // made if nil
	Prefix   string    // path before /sse and /messages, such as "/gw/a"

	// Endpoint gives the bytes of the first event, in pieces that are flushed one by one, from the path to post
	// to; EndpointRelative is what is used if nil. No pieces announce nothing.
	Endpoint func(base, path string) []string
	// Event forms an SSE event from a frame; EventForm is what is used if nil.
	Event func(id string, frame []byte) []byte
	// Before sees each request first; true means that it has answered.
	Before func(w http.ResponseWriter, r *http.Request, body []byte) bool
}

// The ways to announce where messages are posted. Base is the origin, path the path with its query.

// EndpointRelative announces the path.
func EndpointRelative(_, path string) []string { return []string{endpointEvent(path)} }

// EndpointAbsolute announces the whole URL.
func EndpointAbsolute(base, path string) []string { return []string{endpointEvent(base + path)} }

// EndpointBare announces the path relative to the stream's own, without a slash in front.
func EndpointBare(_, path string) []string {
	return []string{endpointEvent(path[strings.LastIndexByte(path, '/')+1:])}
}

// EndpointIn announces the same path at another origin.
func EndpointIn(origin string) func(string, string) []string {
	return func(_, path string) []string { return []string{endpointEvent(origin + path)} }
}

// EndpointUnprefixed announces a path that lacks the prefix, as servers behind a gateway do.
func EndpointUnprefixed(prefix string) func(string, string) []string {
	return func(_, path string) []string { return []string{endpointEvent(strings.TrimPrefix(path, prefix))} }
}

// EndpointInPieces announces the path byte by byte.
func EndpointInPieces(_, path string) []string { return strings.Split(endpointEvent(path), "") }

// EndpointNever sends comments and no endpoint event.
func EndpointNever(_, _ string) []string { return []string{": ping\n\n", ": ping\n\n"} }

func endpointEvent(where string) string { return "event: endpoint\ndata: " + where + "\n\n" }

// ServeSSE serves the server over HTTP+SSE, which only the legacy era has. URL is that of the stream.
func ServeSSE(t testing.TB, srv *Server, opt SSEOptions) *HTTPServer {
	t.Helper()
	if opt.Endpoint == nil {
		opt.Endpoint = EndpointRelative
	}
	web := HTTPOptions{Recorder: opt.Recorder, Event: opt.Event}
	legacy := *srv
	legacy.Era = Legacy
	h := newHTTPServer(t, &legacy, web, func(h *HTTPServer) http.Handler { return &sseHandler{h: h, opt: opt} })
	h.URL = "http://" + h.addr + opt.Prefix + "/sse"
	return h
}

type sseHandler struct {
	h   *HTTPServer
	opt SSEOptions
}

func (s *sseHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in, ok := s.h.begin()
	if !ok {
		return
	}
	defer s.h.served.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		in.record(Record{Kind: Closed, Text: "request body: " + err.Error()})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Host", r.Host)
	in.record(Record{Kind: Request, Conn: sseConn, Header: r.Header.Clone(), Text: r.Method + " " + r.URL.RequestURI()})
	switch {
	case s.opt.Before != nil && s.opt.Before(w, r, body):
	case r.Method == http.MethodGet && r.URL.Path == s.opt.Prefix+"/sse":
		s.open(in, w, r)
	case r.Method == http.MethodPost && r.URL.Path == s.opt.Prefix+"/messages":
		s.message(in, w, r, body)
	case r.URL.Path == s.opt.Prefix+"/sse":
		Status(http.StatusMethodNotAllowed, "", "")(w, r)
	default:
		http.NotFound(w, r)
	}
}

// open begins a session, which lasts as long as its stream.
func (s *sseHandler) open(in *Instance, w http.ResponseWriter, r *http.Request) {
	id := newSessionID()
	sess := newHTTPSession(in, id)
	s.h.mu.Lock()
	s.h.sessions[id] = sess
	s.h.mu.Unlock()
	st := sess.openGet()
	for _, piece := range s.opt.Endpoint("http://"+s.h.addr, s.opt.Prefix+"/messages?sessionId="+id) {
		st.add(item{raw: []byte(piece)})
	}
	s.h.keepOpen(in, &follower{h: s.h, w: w, r: r, st: st, form: AsEvents}, id, 0)
	s.h.mu.Lock()
	delete(s.h.sessions, id)
	s.h.mu.Unlock()
	sess.close(ErrSessionEnded)
}

// message takes a POST and lets every answer go to the session's stream.
func (s *sseHandler) message(in *Instance, w http.ResponseWriter, r *http.Request, body []byte) {
	sess := s.h.find(r.URL.Query().Get("sessionId"))
	if sess == nil {
		http.NotFound(w, r)
		return
	}
	m := parseMessage(body)
	c := sess.request(in.ctx, m, r.Header.Clone())
	sess.seen(m, nil)
	w.WriteHeader(http.StatusAccepted)
	if c != nil {
		in.wg.Go(c.run)
		return
	}
	sess.take(m, r.Header.Clone())
}
