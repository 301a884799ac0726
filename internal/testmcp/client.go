package testmcp

import (
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Client is a raw MCP client over HTTP: it sends what it is told and shows every byte of what comes back. Fields
// are set before Open. Its methods may be used from several goroutines, but they end the test where they fail,
// so goroutines other than the test's use Try and Send.
type Client struct {
	URL          string
	Era          Era
	Version      string      // the revision asked for, then the negotiated one
	Capabilities string      // raw JSON
	LogLevel     string      // modern: asks for log messages with each request
	Header       http.Header // sent with every request, in place of what the client would send; an empty value removes
	Session      string
	Opened       Message // the answer to initialize
	// Answers gives, by method, the result for what the server asks; a text that begins with "!" is an error
	// object. What is not in it is answered with -32601, in the modern era not at all.
	Answers map[string]func(params Raw) string

	// HoldReading leaves the body of each response unread until Stream.Resume, as a stalled client does.
	HoldReading bool

	t    testing.TB
	http *http.Client
	ids  atomic.Int64
	ctx  context.Context
	wg   sync.WaitGroup // response readers and repliers

	mu    sync.Mutex
	asked []Message
}

// NewClient makes a client of one era that has not said anything yet.
func NewClient(t testing.TB, url string, era Era) *Client {
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Client{ctx: ctx, URL: url, Era: era, Version: Rev2511, Capabilities: "{}", Header: http.Header{}, Answers: map[string]func(Raw) string{}, t: t,
		http: &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if era == Modern {
		c.Version = Rev2607
	}
	t.Cleanup(func() {
		cancel(errClosedByTest)
		c.wg.Wait()
		tr.CloseIdleConnections()
	})
	return c
}

// Connect makes a client that is ready to call.
func Connect(t testing.TB, url string, era Era) *Client {
	t.Helper()
	return NewClient(t, url, era).Open()
}

func (c *Client) modern() bool { return c.Era == Modern }

// Open does the legacy handshake; a modern client needs none.
func (c *Client) Open() *Client {
	c.t.Helper()
	if c.modern() {
		return c
	}
	a := c.Initialize()
	if a.Result() == nil {
		c.t.Fatalf("initialize: HTTP %d, %v %s", a.Status, a.Error, a.Body)
	}
	c.Opened, c.Session, c.Version = a.Message, a.Header.Get("Mcp-Session-Id"), a.Result().At("protocolVersion").Str()
	if status := c.Notify("notifications/initialized", ""); status != http.StatusAccepted {
		c.t.Fatalf("notifications/initialized: HTTP %d", status)
	}
	return c
}

// Initialize sends initialize and gives the answer; it remembers nothing.
func (c *Client) Initialize() Answer {
	return c.Try("initialize", `{"protocolVersion":`+Quote(c.Version)+`,"capabilities":`+c.Capabilities+`,"clientInfo":{"name":"testmcp","version":"1"}}`)
}

// NextID gives an id that this client has not used.
func (c *Client) NextID() string { return strconv.FormatInt(c.ids.Add(1), 10) }

// Body gives the message that this client sends; id is raw JSON, empty for a notification.
func (c *Client) Body(id, method, params string) string {
	if c.modern() {
		params = withMeta(orElse(params, "{}"), c.meta())
	}
	return frameOf(id, method, params)
}

func (c *Client) meta() string {
	m := Quote(metaVersion) + ":" + Quote(c.Version) + "," + Quote(metaInfo) + `:{"name":"testmcp","version":"1"},` + Quote(metaCaps) + ":" + c.Capabilities
	if c.LogLevel != "" {
		m += "," + Quote(metaLogLevel) + ":" + Quote(c.LogLevel)
	}
	return m
}

// HeadersFor gives the headers that this client sends with a POST of that method.
func (c *Client) HeadersFor(method, params string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if c.Session != "" {
		h.Set("Mcp-Session-Id", c.Session)
	}
	if c.modern() || c.Opened.Raw != nil {
		h.Set("Mcp-Protocol-Version", c.Version)
	}
	if c.modern() {
		h.Set("Mcp-Method", method)
		if name, ok := (Message{Method: method, Params: Raw(params)}).resourceName(); ok {
			h.Set("Mcp-Name", EncodeHeader(name))
		}
	}
	maps.Copy(h, c.Header)
	maps.DeleteFunc(h, func(_ string, v []string) bool { return len(v) == 0 || v[0] == "" })
	return h
}

// Send posts one message and gives its response stream as soon as there are headers. The id is raw JSON.
func (c *Client) Send(id, method, params string) *Stream {
	s := c.Do(http.MethodPost, c.Body(id, method, params), c.HeadersFor(method, params))
	s.ID = id
	return s
}

// Start sends a request with an id of its own.
func (c *Client) Start(method, params string) *Stream { return c.Send(c.NextID(), method, params) }

// Begin is Start in the background, for responses whose headers are long in coming.
func (c *Client) Begin(method, params string) *Pending {
	p := &Pending{ID: c.NextID(), done: make(chan struct{})}
	c.wg.Go(func() {
		defer close(p.done)
		p.stream = c.Send(p.ID, method, params)
	})
	return p
}

// Pending is a request whose response has perhaps not begun.
type Pending struct {
	ID     string
	done   chan struct{}
	stream *Stream
}

// Stream waits for the response to begin.
func (p *Pending) Stream() *Stream {
	<-p.done
	return p.stream
}

// Final waits for the answer.
func (p *Pending) Final() Answer { return p.Stream().Final() }

// Try sends a request, answers what the server asks meanwhile, in either era's manner, and gives the answer.
func (c *Client) Try(method, params string) Answer {
	const rounds = 8
	first, answer := params, Answer{}
	for range rounds {
		answer = c.Start(method, params).Final()
		if !c.modern() || answer.Result().At("resultType").Str() != "input_required" {
			return answer
		}
		var ok bool
		if params, ok = c.retry(first, answer.Result()); !ok {
			return answer
		}
	}
	return answer
}

// Call is Try that fails the test unless there is an answer, result or error.
func (c *Client) Call(method, params string) Answer {
	c.t.Helper()
	a := c.Try(method, params)
	if a.Result() == nil && a.Err() == nil {
		c.t.Fatalf("%s: HTTP %d, no answer: %v %s", method, a.Status, a.Error, clip(string(a.Body), 500))
	}
	return a
}

// CallTool calls a tool with raw arguments.
func (c *Client) CallTool(name, arguments string) Answer {
	c.t.Helper()
	return c.Call("tools/call", ToolParams(name, arguments))
}

// ToolParams gives the parameters of tools/call.
func ToolParams(name, arguments string) string {
	return `{"name":` + Quote(name) + `,"arguments":` + orElse(arguments, "{}") + `}`
}

// List gives the items of all pages of a list, the member being "tools" for "tools/list" and so on.
func (c *Client) List(method, member string) []Raw {
	c.t.Helper()
	var all []Raw
	for params := "{}"; ; {
		a := c.Call(method, params)
		if a.Result() == nil {
			c.t.Fatalf("%s: %s", method, a.Raw)
		}
		all = append(all, a.Result().At(member).Items()...)
		cursor := a.Result().At("nextCursor")
		if cursor == nil {
			return all
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
}

// ToolNames gives the names of all tools in order.
func (c *Client) ToolNames() []string {
	c.t.Helper()
	var names []string
	for _, tool := range c.List("tools/list", "tools") {
		names = append(names, tool.At("name").Str())
	}
	return names
}

// Reconnect drops idle connections, which a server that has restarted would not know.
func (c *Client) Reconnect() { c.http.CloseIdleConnections() }

// Notify posts a notification and gives the HTTP status.
func (c *Client) Notify(method, params string) int {
	s := c.Send("", method, params)
	defer s.Close()
	return s.Status
}

// Cancel gives up a request in the manner of the era: a notification, or closing the response.
func (c *Client) Cancel(s *Stream) {
	if !c.modern() {
		c.CancelID(s.ID)
		return
	}
	s.Close()
}

// CancelID sends notifications/cancelled for this raw id.
func (c *Client) CancelID(id string) int {
	return c.Notify("notifications/cancelled", `{"requestId":`+id+`,"reason":"test"}`)
}

// Get opens the legacy stream for unrelated messages, or goes on with a broken one after an event id.
func (c *Client) Get(lastEventID string) *Stream {
	h := c.HeadersFor("", "")
	h.Del("Content-Type")
	h.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		h.Set("Last-Event-ID", lastEventID)
	}
	return c.Do(http.MethodGet, "", h)
}

// Delete ends the legacy session and gives the HTTP status.
func (c *Client) Delete() int {
	h := c.HeadersFor("", "")
	h.Del("Content-Type")
	s := c.Do(http.MethodDelete, "", h)
	defer s.Close()
	return s.Status
}

// Listen opens a modern subscription; the filter is raw JSON.
func (c *Client) Listen(filter string) *Stream {
	return c.Start("subscriptions/listen", `{"notifications":`+filter+`}`)
}

// Batch posts an array of messages.
func (c *Client) Batch(messages ...string) *Stream {
	return c.Do(http.MethodPost, "["+strings.Join(messages, ",")+"]", c.HeadersFor("", ""))
}

// Do sends any request with exactly these headers. A failure shows in the stream's Error.
func (c *Client) Do(verb, body string, h http.Header) *Stream {
	ctx, cancel := context.WithCancelCause(c.ctx)
	s := newClientStream(c, cancel)
	req, err := http.NewRequestWithContext(ctx, verb, c.URL, strings.NewReader(body))
	if err != nil {
		s.finish(err)
		return s
	}
	req.Header = h
	req.Host = h.Get("Host")
	s.send(ctx, req)
	return s
}
