package httpd

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The JSON-RPC codes that the door uses.
const (
	codeInvalidRequest = -32600
	codeInternal       = -32603
)

// refusal is an answer of the door itself.
type refusal struct {
	status     int
	code       int
	reason     string // one of the outcomes of a request
	message    string
	retryAfter time.Duration // 0 for not at all
}

type errorBody struct {
	JSONRPC string      `json:"jsonrpc"`
	ID      *int        `json:"id"` // always null: the request was not read
	Error   errorObject `json:"error"`
}

type errorObject struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Data    errorData `json:"data"`
}

type errorData struct {
	Reason       string `json:"reason"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// refuse answers with a JSON-RPC error, the one form of failure that every MCP client can show to its user.
func refuse(w http.ResponseWriter, f refusal) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.retryAfter.Seconds())))
	}
	writeJSON(w, f.status, errorBody{JSONRPC: "2.0", Error: errorObject{
		Code: f.code, Message: f.message,
		Data: errorData{Reason: f.reason, RetryAfterMS: f.retryAfter.Milliseconds()},
	}})
}

// refuseAt refuses and counts where.
func (d *Door) refuseAt(w http.ResponseWriter, where string, f refusal) {
	d.metrics.refused[where].Inc()
	refuse(w, f)
}

// writeJSON writes a whole response. A failed write means that the client has gone, which is nobody's fault.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types, all of which can be encoded
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
