package cheapmcp

import (
	"crypto/rand"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// maxBody bounds a request body in bytes.
const maxBody = 1 << 20

// Handler serves s over Streamable HTTP, every answer as one JSON object.
//
// Legacy sessions cost nothing: an id is good when this handler could have
// given it out, whatever became of the session since.
func Handler(s *Server) http.Handler {
	h := &handler{server: s, prefix: rand.Text() + "-"}
	h.bodies.New = func() any { return new([maxBody + 1]byte) }
	return h
}

type handler struct {
	server   *Server
	prefix   string // of every session id
	sessions atomic.Int64
	bodies   sync.Pool // of *[maxBody + 1]byte
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		h.withoutBody(w, r)
		return
	}
	buffer := h.bodies.Get().(*[maxBody + 1]byte)
	defer h.bodies.Put(buffer)
	n, err := io.ReadFull(r.Body, buffer[:])
	if err != io.ErrUnexpectedEOF && err != io.EOF {
		http.Error(w, "body too long", http.StatusRequestEntityTooLarge)
		return
	}
	req, rep := h.server.answer(buffer[:n])
	status, fault := h.door(r, &req, &rep)
	if fault != "" {
		http.Error(w, fault, status)
		return
	}
	if string(req.method) == "initialize" && rep.code == 0 {
		w.Header().Set("Mcp-Session-Id", h.prefix+strconv.FormatInt(h.sessions.Add(1), 10))
	}
	write(w, status, &rep)
}

// withoutBody answers GET, for which there is never a stream, and DELETE.
func (h *handler) withoutBody(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete && strings.HasPrefix(r.Header.Get("Mcp-Session-Id"), h.prefix) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Allow", "POST, DELETE")
	w.WriteHeader(http.StatusMethodNotAllowed)
}

// door applies the rules that belong to HTTP: the session of a legacy request,
// the mirrored headers and the status of a modern one. A fault is told in
// plain text instead of the reply.
func (h *handler) door(r *http.Request, req *request, rep *reply) (status int, fault string) {
	if req.modern {
		return modernStatus(r, req, rep), ""
	}
	switch {
	case rep.code == codeParse || rep.code == codeInvalidRequest:
		return http.StatusBadRequest, ""
	case string(req.method) == "initialize":
		return http.StatusOK, ""
	}
	session := r.Header.Get("Mcp-Session-Id")
	if session == "" {
		return http.StatusBadRequest, "Mcp-Session-Id is missing"
	}
	if !strings.HasPrefix(session, h.prefix) {
		return http.StatusNotFound, "no such session"
	}
	return http.StatusOK, ""
}

func modernStatus(r *http.Request, req *request, rep *reply) int {
	if !rep.answers() {
		return http.StatusOK
	}
	if !mirrored(r.Header, req) {
		*rep = reply{id: req.id, code: codeHeaderMismatch, fault: "headers and body differ"}
	}
	switch rep.code {
	case codeHeaderMismatch, codeBadVersion:
		return http.StatusBadRequest
	case codeNoMethod:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// mirrored reports whether the headers repeat what the body says. The names
// here are plain ASCII, so an encoded Mcp-Name cannot be right.
func mirrored(header http.Header, req *request) bool {
	return header.Get("Mcp-Protocol-Version") == string(req.version) &&
		header.Get("Mcp-Method") == string(req.method) &&
		(string(req.method) != "tools/call" || header.Get("Mcp-Name") == string(req.name))
}

func write(w http.ResponseWriter, status int, rep *reply) {
	if !rep.answers() {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	header := w.Header()
	header["Content-Type"] = jsonType
	if rep.code != 0 {
		text := rep.render()
		header.Set("Content-Length", strconv.Itoa(len(text)))
		w.WriteHeader(status)
		w.Write(text)
		return
	}
	// The pieces are written one by one: a long result is never copied.
	header.Set("Content-Length", strconv.Itoa(rep.size()))
	w.WriteHeader(status)
	io.WriteString(w, replyHead)
	w.Write(rep.id)
	io.WriteString(w, replyResult)
	w.Write(rep.result)
	io.WriteString(w, replyEnd)
}

// jsonType is shared by all answers; net/http only reads it.
var jsonType = []string{"application/json"}
