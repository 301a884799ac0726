package testmcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Why a call's context ended, to be told apart with errors.Is on Call.Cause.
var (
	ErrCancelled     = errors.New("cancelled by the client")
	ErrStreamClosed  = errors.New("response stream closed by the client")
	ErrSessionEnded  = errors.New("session ended")
	errServerStopped = errors.New("server stopped")
)

// Call is one request or notification in the hands of a Handler. Its methods may be used from several goroutines.
type Call struct {
	Message
	Header http.Header // of the HTTP request, nil on a pipe

	session *session
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stream  *stream // of the HTTP response, nil on a pipe
}

// Context ends when the client cancels, closes a modern response stream or ends the session.
func (c *Call) Context() context.Context { return c.ctx }

// Cause says why the context ended; nil while it has not.
func (c *Call) Cause() error { return context.Cause(c.ctx) }

// Args gives the tool arguments; a path leads into them.
func (c *Call) Args(path ...any) Raw { return c.Params.At("arguments").At(path...) }

// Token gives the caller's progress token as it came, nil if there was none.
func (c *Call) Token() Raw { return c.meta("progressToken") }

// Modern says whether this request came in the modern shape.
func (c *Call) Modern() bool {
	return c.Method == "server/discover" || c.Params.Has("_meta", metaVersion)
}

// Version gives the revision that holds for this call.
func (c *Call) Version() string {
	if c.Modern() {
		return c.meta(metaVersion).Str()
	}
	return c.session.negotiated()
}

// Capabilities gives what the client declared: per request if modern, at initialize if legacy.
func (c *Call) Capabilities() Raw {
	if c.Modern() {
		return c.meta(metaCaps)
	}
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	return c.session.caps
}

// Session names the conversation: the session id over HTTP, "pipe" in a child.
func (c *Call) Session() string { return c.session.label }

// Instance gives the running server.
func (c *Call) Instance() *Instance { return c.session.in }

// Process gives the child process, to crash it and the like. It panics when the server is not a child.
func (c *Call) Process() *Process {
	if c.session.in.proc == nil {
		panic("testmcp: this server does not run as a child process")
	}
	return c.session.in.proc
}

// AddSession adds n to a number kept for this session only and gives the sum.
func (c *Call) AddSession(name string, n int) int {
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	c.session.values[name] += n
	return c.session.values[name]
}

// Result answers with this raw result. For a modern caller resultType is put first if it is missing.
func (c *Call) Result(raw string) {
	if c.Modern() {
		raw = withMember(raw, "resultType", `"complete"`)
	}
	c.RawResult(raw)
}

// RawResult answers with exactly these bytes as the result.
func (c *Call) RawResult(raw string) {
	c.Frame(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":` + raw + `}`)
}

// Text answers a tool call with one block of text.
func (c *Call) Text(text string) {
	c.Result(`{"content":[{"type":"text","text":` + Quote(text) + `}]}`)
}

// ToolError answers a tool call with isError and one block of text.
func (c *Call) ToolError(text string) {
	c.Result(`{"content":[{"type":"text","text":` + Quote(text) + `}],"isError":true}`)
}

// Error answers with a JSON-RPC error; data is raw JSON and may be empty.
func (c *Call) Error(code int, message, data string) {
	e := `{"code":` + strconv.Itoa(code) + `,"message":` + Quote(message)
	if data != "" {
		e += `,"data":` + data
	}
	c.RawError(e + "}")
}

// RawError answers with exactly these bytes as the error.
func (c *Call) RawError(raw string) {
	c.Frame(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"error":` + raw + `}`)
}

// Frame sends these bytes as one frame on the stream of this call, answer or not, valid or not.
func (c *Call) Frame(frame string) { c.session.write([]byte(frame), c) }

// Elsewhere sends a frame outside the stream of this call: the GET stream over HTTP, the same pipe in a child.
func (c *Call) Elsewhere(frame string) { c.session.write([]byte(frame), nil) }

// Notify sends a notification on the stream of this call.
func (c *Call) Notify(method, params string) { c.Frame(frameOf("", method, params)) }

// Progress reports progress under the caller's token, and nothing if the caller gave none. Total 0 is left out.
func (c *Call) Progress(done, total float64, message string) {
	if c.Token() == nil {
		return
	}
	p := fmt.Sprintf(`{"progressToken":%s,"progress":%v`, c.Token(), done)
	if total != 0 {
		p += fmt.Sprintf(`,"total":%v`, total)
	}
	if message != "" {
		p += `,"message":` + Quote(message)
	}
	c.Notify("notifications/progress", p+"}")
}

// Log sends a log message with raw JSON data, asked for or not.
func (c *Call) Log(level, data string) {
	c.Notify("notifications/message", `{"level":`+Quote(level)+`,"logger":"testmcp","data":`+data+`}`)
}

// Ask sends a legacy server→client request on the stream of this call and gives the raw answer frame.
func (c *Call) Ask(method, params string) (Raw, error) {
	return c.session.ask(c.ctx, method, params, c)
}

// AskElsewhere asks outside the stream of this call; see Elsewhere.
func (c *Call) AskElsewhere(method, params string) (Raw, error) {
	return c.session.ask(c.ctx, method, params, nil)
}

// NeedInput answers a modern call with input_required. Requests is a raw object of them, state raw JSON; either may be "".
func (c *Call) NeedInput(requests, state string) {
	r := `{"resultType":"input_required"`
	if requests != "" {
		r += `,"inputRequests":` + requests
	}
	if state != "" {
		r += `,"requestState":` + state
	}
	c.RawResult(r + "}")
}

// Input asks the client in the manner of the caller's era and gives the result of the answer. Over a modern
// connection it answers input_required the first time and returns ok false: the handler then returns, and is
// called again with the answer. A legacy error answer is ok false too, and is then the call's own error.
func (c *Call) Input(key, method, params string) (result Raw, ok bool) {
	if c.Modern() {
		if given := c.Params.At("inputResponses", key); given != nil {
			return given, true
		}
		c.NeedInput(`{`+Quote(key)+`:{"method":`+Quote(method)+`,"params":`+orElse(params, "{}")+`}}`, Quote("state of "+key))
		return nil, false
	}
	answer, err := c.Ask(method, params)
	if err != nil {
		return nil, false
	}
	if e := answer.At("error"); e != nil {
		c.RawError(string(e))
		return nil, false
	}
	return answer.At("result"), true
}

// Hang waits until the call's context ends and answers nothing.
func (c *Call) Hang() { <-c.ctx.Done() }

// Until waits for a signal of the test (Recorder.Signal); false means that the context ended before.
func (c *Call) Until(signal string) bool {
	select {
	case <-c.session.in.rec.signal(signal):
		return true
	case <-c.ctx.Done():
		return false
	}
}

// Note puts a line of the script's own into the record.
func (c *Call) Note(text string) {
	c.session.in.record(Record{Kind: Note, Conn: c.session.label, Text: text, ID: c.ID})
}

// Respond takes over the HTTP response: f may set a status, write any bytes, hijack. It panics on a pipe. When
// the response has begun already, f can only add bytes or end it.
func (c *Call) Respond(f http.HandlerFunc) {
	if c.stream == nil {
		panic("testmcp: Respond needs an HTTP server")
	}
	c.session.forget(c)
	c.stream.add(item{take: f, last: true})
}

// end cancels the context and records that, once.
func (c *Call) end(cause error) {
	if c.ctx.Err() != nil {
		return
	}
	c.session.in.record(Record{Kind: Cancel, Conn: c.session.label, ID: c.ID, Method: c.Method, Text: cause.Error()})
	c.cancel(cause)
}

// wants says whether this listen request asked for that notification.
func (c *Call) wants(method string, params Raw) bool {
	filter := c.Params.At("notifications")
	switch method {
	case "notifications/tools/list_changed":
		return filter.Has("toolsListChanged")
	case "notifications/prompts/list_changed":
		return filter.Has("promptsListChanged")
	case "notifications/resources/list_changed":
		return filter.Has("resourcesListChanged")
	case "notifications/resources/updated":
		for _, uri := range filter.At("resourceSubscriptions").Items() {
			if strings.HasPrefix(params.At("uri").Str(), uri.Str()) {
				return true
			}
		}
	case "notifications/tasks":
		return filter.Has("taskIds")
	}
	return false
}
