package session

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A tool can be called without the protocol: the body of the POST is its arguments, the response its result as a plain JSON
// value. Policies, names, limits and credentials are those of a call over MCP, since it becomes one.

// directClient is what such a caller is called towards servers.
const directClient = `{"name":"mcp-proxy api","version":"1"}`

// ServeTool serves one call of a tool in a view, for this principal.
func (m *Manager) ServeTool(w http.ResponseWriter, r *http.Request, view, principal, tool string) {
	f, fail := m.directFrame(r, tool)
	if fail != nil {
		fail.write(w)
		return
	}
	if !m.begin() {
		(&directFault{status: http.StatusServiceUnavailable, Reason: string(proxy.Unavailable), Message: "the proxy is shutting down", retry: 1}).write(w)
		return
	}
	defer m.calls.Done()
	ctx, cancel := context.WithCancelCause(m.base)
	defer cancel(nil)
	stop := context.AfterFunc(r.Context(), func() { cancel(proxy.CauseClient) })
	defer stop()
	caller := modernCaller(f, wire.LatestModern, view, principal)
	caller.Headers = r.Header
	if principal != "" {
		caller.Unit = "principal/" + principal
	}
	a := m.proxy.Handle(ctx, cancel, &proxy.Request{Caller: caller, Frame: f, Sink: deaf{}})
	defer a.Release()
	if a.Ended {
		return // nobody is there
	}
	value, fail := directAnswer(&a)
	if fail != nil {
		fail.write(w)
		return
	}
	writePlain(w, http.StatusOK, value)
}

// directFrame makes a request of the arguments.
func (m *Manager) directFrame(r *http.Request, tool string) (*wire.Frame, *directFault) {
	body, err := readBody(r)
	if err != nil {
		return nil, &directFault{status: http.StatusRequestEntityTooLarge, Reason: string(proxy.Invalid), Message: "the body could not be read: " + err.Error()}
	}
	args := bytes.TrimSpace(body)
	switch {
	case len(args) == 0:
		args = []byte("{}")
	case !isJSON(r.Header):
		return nil, &directFault{status: http.StatusUnsupportedMediaType, Reason: string(proxy.Invalid), Message: "Content-Type must be application/json"}
	case args[0] != '{' || !json.Valid(args):
		return nil, invalidDirect("the body must be the arguments of the tool, a JSON object")
	}
	b := wire.AppendString([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`), tool)
	b = append(append(b, `,"arguments":`...), args...)
	b = append(b, `,"_meta":{"`+wire.MetaProtocolVersion+`":"`+wire.LatestModern+`","`+wire.MetaClientInfo+`":`+directClient+`,"`+wire.MetaClientCapabilities+`":{}}}}`...)
	f, err := wire.Parse(b, wire.Downstream, m.limits)
	if err != nil {
		return nil, invalidDirect("the body: " + err.Error())
	}
	return f, nil
}

// deaf hears nothing and cannot be asked.
type deaf struct{}

// Notify implements proxy.Sink.
func (deaf) Notify([]byte) {}

// Ask implements proxy.Sink.
func (deaf) Ask(context.Context, string, []byte) (*wire.Frame, error) {
	return nil, proxy.ErrCannotAsk
}

// directAnswer takes the protocol off an answer.
func directAnswer(a *proxy.Answer) (value []byte, _ *directFault) {
	f, err := wire.Parse(a.Bytes(), wire.Upstream, wire.Limits{})
	if err != nil {
		return nil, &directFault{status: http.StatusBadGateway, Reason: string(proxy.TransportError), Message: err.Error()}
	}
	if f.Kind == wire.KindError {
		return nil, directError(a, f)
	}
	if kind, ok := wire.DecodeString(f.Body.Get(f.Raw, "resultType").Of(f.Raw)); ok && kind != "complete" {
		return nil, &directFault{status: http.StatusUnprocessableEntity, Reason: string(proxy.ToolError),
			Message: "the tool answers with " + kind + ", which only an MCP client can go on with"}
	}
	plain := wire.PlainResult(f)
	if !plain.Failed {
		return plain.Value, nil
	}
	fail := &directFault{status: http.StatusUnprocessableEntity, Reason: string(proxy.ToolError), Message: "the tool failed", Result: plain.Value}
	if plain.IsText {
		fail.Message = plain.Text
	}
	return nil, fail
}

// directFault is what is answered in place of a value: {"error": {...}}.
type directFault struct {
	status  int
	retry   int             // seconds; 0 for not at all
	asks    []string        // WWW-Authenticate headers of the server
	Reason  string          `json:"reason"` // the outcome of the call
	Message string          `json:"message"`
	Code    int             `json:"code,omitempty"`   // of the JSON-RPC error
	Data    json.RawMessage `json:"data,omitempty"`   // of it
	Result  json.RawMessage `json:"result,omitempty"` // of a tool that failed, as its value would be
}

func invalidDirect(text string) *directFault {
	return &directFault{status: http.StatusBadRequest, Reason: string(proxy.Invalid), Message: text}
}

// directStatus are the HTTP statuses of calls that were not carried out.
var directStatus = map[proxy.Outcome]int{
	proxy.Invalid: http.StatusBadRequest, proxy.Denied: http.StatusForbidden, proxy.Overloaded: http.StatusServiceUnavailable,
	proxy.Unavailable: http.StatusServiceUnavailable, proxy.Timeout: http.StatusGatewayTimeout,
}

// directError makes the fault of an error answer.
func directError(a *proxy.Answer, f *wire.Frame) *directFault {
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	fail := &directFault{status: directStatus[a.Outcome], Reason: string(a.Outcome), Code: a.Code, Data: obj.Get(f.Raw, "data").Of(f.Raw)}
	fail.Message, _ = wire.DecodeString(obj.Get(f.Raw, "message").Of(f.Raw))
	data, _ := wire.ObjectAt(f.Raw, obj.Get(f.Raw, "data"))
	if ms, err := strconv.Atoi(string(data.Get(f.Raw, "retry_after_ms").Of(f.Raw))); err == nil {
		fail.retry = max(1, (ms+999)/1000)
	}
	switch {
	case a.Status != 0:
		fail.status, fail.asks = a.Status, a.Authenticate
	case a.Unknown:
		fail.status = http.StatusNotFound
	case a.Code == wire.CodeInvalidParams:
		fail.status = http.StatusBadRequest
	case fail.status == 0:
		fail.status = http.StatusBadGateway
	}
	return fail
}

func (e *directFault) write(w http.ResponseWriter) {
	if e.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retry))
	}
	if len(e.asks) > 0 {
		w.Header()["Www-Authenticate"] = e.asks
	}
	body, err := json.Marshal(map[string]*directFault{"error": e})
	if err != nil {
		panic(err) // parts of frames that were validated
	}
	writePlain(w, e.status, body)
}

func writePlain(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(bytes.Clone(body), '\n'))
}
