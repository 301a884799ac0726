package testmcp

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Ready-made answers, for Call.Respond and the hooks of HTTPOptions.

// Status answers with this status, content type and body, each as it is.
func Status(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// HTML answers with a page such as a balancer's.
func HTML(code int) http.HandlerFunc {
	return Status(code, "text/html", "<html><body><h1>"+http.StatusText(code)+"</h1></body></html>")
}

// Events answers 200 with an event stream of exactly these bytes, each part flushed on its own, and ends it.
func Events(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for _, p := range parts {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Redirect answers with this status and Location.
func Redirect(code int, location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(code)
	}
}

// Silence sends no header until the client goes away.
func Silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// HoldOpen begins an event stream and sends nothing on it until the client goes away.
func HoldOpen(w http.ResponseWriter, r *http.Request) {
	Events("")(w, r)
	<-r.Context().Done()
}

// Reset breaks the TCP connection so that the client sees a reset.
func Reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Truncated declares a longer body than it sends, then ends the connection.
func Truncated(contentType, body string, declared int) http.HandlerFunc {
	return RawHTTP("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nContent-Length: " + strconv.Itoa(declared) + "\r\n\r\n" + body)
}

// CutChunk sends a chunked body without its end, then ends the connection.
func CutChunk(contentType, body string) http.HandlerFunc {
	return RawHTTP("HTTP/1.1 200 OK\r\nContent-Type: " + contentType + "\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strconv.FormatInt(int64(len(body)), 16) + "\r\n" + body + "\r\n")
}

// RawHTTP writes these bytes to the connection in place of a response and closes it.
func RawHTTP(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// Gzip answers with a compressed body, asked for or not.
func Gzip(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, body)
		_ = z.Close()
	}
}

// Slowly sends a body in pieces with a pause between them.
func Slowly(contentType string, pause time.Duration, pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(http.StatusOK)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
		}
	}
}

// LostSpellings are the ways in which servers in the field say that they do not know a session, for
// HTTPOptions.Lost.
var LostSpellings = map[string]http.HandlerFunc{
	"404 empty":       Status(404, "", ""),
	"404 text":        Status(404, "text/plain", "session not found\n"),
	"404 null id":     Status(404, "application/json", lostBody("null")),
	"404 foreign id":  Status(404, "application/json", lostBody(`"server-error"`)),
	"400 text":        Status(400, "text/plain", "Bad Request: No valid session ID provided\n"),
	"400 null id":     Status(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`),
	"401 text":        Status(401, "text/plain", "session expired\n"),
	"410 empty":       Status(410, "", ""),
	"503 text":        Status(503, "text/plain", "no such session\n"),
	"200 with own id": lostWithOwnID,
}

func lostBody(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"Session not found"}}`
}

func lostWithOwnID(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := orElse(string(Raw(body).At("id")), "null")
	Status(http.StatusOK, "application/json", lostBody(id))(w, r)
}

// EventForm is an SSE event as most servers write it.
func EventForm(id string, frame []byte) []byte {
	return []byte(idField(id, "\n") + "event: message\ndata: " + string(frame) + "\n\n")
}

// EventEnding writes SSE events whose lines end with these bytes: "\r\n" or "\r".
func EventEnding(end string) func(string, []byte) []byte {
	return func(id string, frame []byte) []byte {
		return []byte(idField(id, end) + "event: message" + end + "data: " + string(frame) + end + end)
	}
}

// EventLines spreads a frame over two data lines, split at its first comma, which leaves the JSON valid.
func EventLines(id string, frame []byte) []byte {
	head, tail, found := strings.Cut(string(frame), ",")
	if !found {
		return EventForm(id, frame)
	}
	return []byte(idField(id, "\n") + "data: " + head + ",\ndata: " + tail + "\n\n")
}

// EventAmongNoise surrounds each event with everything that a reader must pass over.
func EventAmongNoise(id string, frame []byte) []byte {
	return []byte(": comment\n\nretry: 500\n\nevent: ping\ndata: now\n\ndata\n\nunknown: field\nnocolon\n" + string(EventForm(id, frame)) + ":\n\n")
}

func idField(id, end string) string {
	if id == "" {
		return ""
	}
	return "id: " + id + end
}

// StreamBytes puts bytes on the event stream of this call as they are: comments, half events, foreign events.
func (c *Call) StreamBytes(b string) { c.stream.add(item{raw: []byte(b)}) }

// EndStream ends the HTTP response without an answer.
func (c *Call) EndStream() {
	c.session.forget(c)
	c.stream.add(item{last: true})
}

// CutStream breaks the connection of the response while the call goes on; the client may resume the stream.
func (c *Call) CutStream() { c.stream.add(item{cut: new(atomic.Bool)}) }
