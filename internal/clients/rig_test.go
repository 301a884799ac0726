package clients

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
)

// visit is one HTTP request that the bridge has made.
type visit struct {
	verb   string
	header http.Header
	body   string
	w      http.ResponseWriter
	gone   <-chan struct{} // closed when the client has closed the response
}

// flush sends what has been written, with the headers.
func (v *visit) flush() { v.w.(http.Flusher).Flush() }

// json answers with a JSON body.
func (v *visit) json(status int, body string) {
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_, _ = io.WriteString(v.w, body)
}

// event writes an event of a stream.
func (v *visit) event(id, data string) {
	v.w.Header().Set("Content-Type", "text/event-stream")
	if id != "" {
		_, _ = io.WriteString(v.w, "id: "+id+"\n")
	}
	_, _ = io.WriteString(v.w, "data: "+data+"\n\n")
	v.flush()
}

// far is the proxy that is bridged to, without a network. It plays one script.
type far struct {
	script func(n int, v *visit) // n counts the requests

	mu      sync.Mutex
	visits  []*visit
	refuses bool // it cannot be reached
}

func (f *far) seen() []*visit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*visit(nil), f.visits...)
}

func (f *far) away(is bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuses = is
}

// RoundTrip implements http.RoundTripper.
func (f *far) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	if f.refuses {
		f.mu.Unlock()
		return nil, io.ErrClosedPipe
	}
	ctx, cancel := context.WithCancel(r.Context())
	pr, pw := io.Pipe()
	w := &farWriter{header: http.Header{}, pw: pw, ready: make(chan struct{})}
	v := &visit{verb: r.Method, header: r.Header.Clone(), w: w, gone: ctx.Done()}
	n := len(f.visits)
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		v.body = string(b)
	}
	f.visits = append(f.visits, v)
	f.mu.Unlock()
	if t := httptrace.ContextClientTrace(r.Context()); t != nil {
		t.WroteRequest(httptrace.WroteRequestInfo{})
	}
	go func() {
		f.script(n, v)
		w.WriteHeader(http.StatusOK)
		_ = pw.Close()
		w.started()
	}()
	context.AfterFunc(ctx, func() { _ = pr.CloseWithError(context.Canceled) })
	select {
	case <-w.ready:
		return &http.Response{Status: http.StatusText(w.status), StatusCode: w.status, Header: w.header, Body: farBody{pr, cancel}, Request: r}, nil
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

type farBody struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b farBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// farWriter gives what is written to the client at once.
type farWriter struct {
	header http.Header
	pw     *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
	status int
}

func (w *farWriter) Header() http.Header { return w.header }

func (w *farWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *farWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.started()
	return w.pw.Write(b)
}

func (w *farWriter) started() { w.once.Do(func() { close(w.ready) }) }

func (w *farWriter) Flush() {
	w.WriteHeader(http.StatusOK)
	w.started()
}

// talk is a client at one end of a bridge.
type talk struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error

	mu    sync.Mutex
	lines []string
}

const farURL = "http://far.test/mcp"

// dial begins a conversation over a bridge to f.
func dial(t *testing.T, f *far, token string) *talk {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	k := &talk{t: t, in: inW, out: outR, done: make(chan error, 1)}
	b := &Bridge{URL: farURL, Token: token, TokenVariable: "THE_TOKEN", Log: zap.NewNop(), transport: f}
	go func() {
		k.done <- b.Run(context.Background(), inR, outW)
		_ = outW.Close()
	}()
	go func() {
		in := bufio.NewScanner(outR)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			k.mu.Lock()
			k.lines = append(k.lines, in.Text())
			k.mu.Unlock()
		}
	}()
	return k
}

// say sends lines, each when everybody is waiting again, and gives what has come.
func (k *talk) say(text ...string) []string {
	k.t.Helper()
	for _, line := range text {
		if _, err := io.WriteString(k.in, line+"\n"); err != nil {
			k.t.Errorf("writing %.60q: %v", line, err)
		}
		synctest.Wait()
	}
	return k.heard()
}

// heard gives what has come since it was last asked.
func (k *talk) heard() []string {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.lines
	k.lines = nil
	return out
}

// end closes the input and waits for the end.
func (k *talk) end() {
	k.t.Helper()
	_ = k.in.Close()
	if err := <-k.done; err != nil {
		k.t.Errorf("Run: %v", err)
	}
	_ = k.out.Close()
	synctest.Wait()
}

// want fails the test unless there is one line with each of these texts, in this order.
func want(t *testing.T, what string, got []string, texts ...string) {
	t.Helper()
	ok := len(got) == len(texts)
	for i := range min(len(got), len(texts)) {
		ok = ok && strings.Contains(got[i], texts[i])
	}
	if !ok {
		t.Errorf("%s: %d lines\n%s\nwant\n%s", what, len(got), strings.Join(got, "\n"), strings.Join(texts, "\n"))
	}
}

// wantHeader fails the test unless a request has these headers; "" stands for absent.
func wantHeader(t *testing.T, what string, v *visit, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := v.header.Get(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s: the header %s is %q, want %q", what, pairs[i], got, pairs[i+1])
		}
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
	initResult  = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{}}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callA       = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t","arguments":{"n":12345678901234567890}}}`
	answerA     = `{"jsonrpc":"2.0","id":"A","result":{"content":[],"odd":1.50}}`
	cancelA     = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"A"}}`
	modernMeta  = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)
