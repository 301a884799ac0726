package testmcp

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Conversations in records that have no session id.
const (
	modernConn    = "modern"     // modern requests, each a conversation of its own
	statelessConn = "no-session" // legacy requests to a server that issues no session id
	sseConn       = "sse"        // HTTP requests of the HTTP+SSE transport
)

// HTTPOptions say how a Server is served over HTTP, and in what that errs. The zero value errs in nothing.
type HTTPOptions struct {
	Recorder *Recorder // made if nil
	Path     string    // "/mcp" if empty; any other path is 404

	Answers    Answers
	NoSessions bool // legacy initialize gives no session id
	Resumable  bool // legacy events have ids, and GET with Last-Event-ID goes on where a stream broke
	LoseAfter  int  // a session is forgotten after so many tools/call requests; 0 is never

	// Before sees each request first; true means that it has answered.
	Before func(w http.ResponseWriter, r *http.Request, body []byte) bool
	// Get, Lost, Notified take the place of: the GET stream, the empty 404 to an unknown session, and the empty
	// 202 to notifications and answers. They can read the request's body.
	Get, Lost, Notified http.HandlerFunc
	// Event forms an SSE event from a frame; EventForm is what is used if nil.
	Event func(id string, frame []byte) []byte
	// Prime gives bytes for the beginning of each event stream.
	Prime func(id string) string
	// Headers may change the headers of any answer of the kit's own.
	Headers func(h http.Header, r *http.Request)
	// JSONType and EventType take the place of the two content types.
	JSONType, EventType string
}

// HTTPServer is a Server on a real socket. It ends with the test.
type HTTPServer struct {
	URL string // of the endpoint
	Rec *Recorder

	t    testing.TB
	srv  *Server
	opt  HTTPOptions
	addr string
	mux  func(*HTTPServer) http.Handler

	mu       sync.Mutex
	in       *Instance
	web      *http.Server
	sessions map[string]*httpSession
	served   sync.WaitGroup
}

// ServeHTTP serves the server over streamable HTTP, in whichever eras it speaks.
func ServeHTTP(t testing.TB, srv *Server, opt HTTPOptions) *HTTPServer {
	t.Helper()
	opt.Path = orElse(opt.Path, "/mcp")
	h := newHTTPServer(t, srv, opt, func(h *HTTPServer) http.Handler { return http.HandlerFunc(h.handle) })
	h.URL = "http://" + h.addr + opt.Path
	return h
}

func newHTTPServer(t testing.TB, srv *Server, opt HTTPOptions, mux func(*HTTPServer) http.Handler) *HTTPServer {
	t.Helper()
	if opt.Recorder == nil {
		opt.Recorder = NewRecorder(t)
	}
	h := &HTTPServer{Rec: opt.Recorder, t: t, srv: srv, opt: opt, addr: "127.0.0.1:0", mux: mux}
	h.Start()
	t.Cleanup(h.Stop)
	return h
}

// Start serves again after Stop, at the same address and with nothing remembered.
func (h *HTTPServer) Start() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.web != nil {
		return
	}
	ln, err := net.Listen("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.addr = ln.Addr().String()
	h.in, h.sessions = newInstance(h.srv, h.Rec), map[string]*httpSession{}
	h.web = &http.Server{Handler: h.mux(h)}
	web := h.web
	h.served.Go(func() { _ = web.Serve(ln) })
	h.in.record(Record{Kind: Start, Text: h.srv.name() + " at " + h.addr})
}

// Stop breaks every connection and refuses new ones. It waits for all handlers.
func (h *HTTPServer) Stop() {
	h.mu.Lock()
	web, in := h.web, h.in
	h.web = nil
	h.mu.Unlock()
	if web == nil {
		return
	}
	_ = web.Close()
	h.served.Wait()
	in.end()
}

// Restart is Stop and Start: every session is lost.
func (h *HTTPServer) Restart() {
	h.Stop()
	h.Start()
}

// Instance gives the running server.
func (h *HTTPServer) Instance() *Instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.in
}

// ForgetSessions loses every legacy session while connections stay open.
func (h *HTTPServer) ForgetSessions() {
	h.mu.Lock()
	lost := h.sessions
	h.sessions = map[string]*httpSession{}
	h.mu.Unlock()
	for _, s := range lost {
		s.end()
	}
}

// Sessions says how many legacy sessions are open.
func (h *HTTPServer) Sessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

// CutStreams breaks every open GET stream.
func (h *HTTPServer) CutStreams() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		s.eachGet(func(st *stream) { st.add(item{take: Reset, last: true}) })
	}
}

// begin counts a request in and gives what it is for; false when the server is stopping.
func (h *HTTPServer) begin() (*Instance, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.web == nil {
		return nil, false
	}
	h.served.Add(1)
	return h.in, true
}

func (h *HTTPServer) handle(w http.ResponseWriter, r *http.Request) {
	in, ok := h.begin()
	if !ok {
		return
	}
	defer h.served.Done()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		in.record(Record{Kind: Closed, Text: "request body: " + err.Error()})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set("Host", r.Host) // so that records have it
	in.record(Record{Kind: Request, Conn: r.Header.Get("Mcp-Session-Id"), Header: r.Header.Clone(), Text: r.Method + " " + r.URL.RequestURI()})
	switch {
	case h.opt.Before != nil && h.opt.Before(w, r, body):
	case r.URL.Path != h.opt.Path:
		http.NotFound(w, r)
	case r.Method == http.MethodPost:
		h.post(in, w, r, body)
	case r.Method == http.MethodGet:
		h.get(in, w, r)
	case r.Method == http.MethodDelete:
		h.delete(in, w, r)
	default:
		Status(http.StatusMethodNotAllowed, "", "")(w, r)
	}
}

func (h *HTTPServer) addHeaders(head http.Header, r *http.Request) {
	if h.opt.Headers != nil {
		h.opt.Headers(head, r)
	}
}

func (h *HTTPServer) event(id string, frame []byte) []byte {
	if h.opt.Event != nil {
		return h.opt.Event(id, frame)
	}
	return EventForm(id, frame)
}

func (h *HTTPServer) prime(id string) string {
	if h.opt.Prime != nil {
		return h.opt.Prime(id)
	}
	if id != "" {
		return "id: " + id + "\ndata: \n\n"
	}
	return ""
}

func (h *HTTPServer) lost(w http.ResponseWriter, r *http.Request) {
	if h.opt.Lost != nil {
		h.opt.Lost(w, r)
		return
	}
	Status(http.StatusNotFound, "", "")(w, r)
}

func newSessionID() string { return strings.ToLower(rand.Text()) }
