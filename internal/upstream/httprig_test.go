package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// roundTripper is a server without a network. It keeps what it was sent.
type roundTripper struct {
	serve func(n int, r *http.Request, body string) (*http.Response, error)

	mu   sync.Mutex
	seen []string // verb, path and body of each request
	got  []http.Header
}

func (rt *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}
	rt.mu.Lock()
	n := len(rt.seen)
	rt.seen = append(rt.seen, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+body))
	rt.got = append(rt.got, r.Header.Clone())
	rt.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp, err := rt.serve(n, r, body)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

func (rt *roundTripper) requests() []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return append([]string(nil), rt.seen...)
}

// respond makes a response; pairs are header names and values.
func respond(status int, kind, body string, pairs ...string) *http.Response {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

const (
	jsonType = "application/json"
	sseType  = "text/event-stream"
)

func httpConfig() *config.Server {
	cfg := serverConfig(config.TransportHTTP)
	cfg.URL = "http://server.test/mcp?key=hidden"
	return cfg
}

func testHTTPConn(t *testing.T, r *rig, rt http.RoundTripper, peer *Peer) *httpConn {
	t.Helper()
	c, err := newHTTPConn(r.env, httpConfig(), rt)
	if err != nil {
		t.Fatal(err)
	}
	if peer != nil {
		c.negotiated(peer)
	}
	t.Cleanup(c.Close)
	return c
}

var (
	legacyPeer = &Peer{Era: wire.Legacy, Version: wire.Rev20250618}
	modernPeer = &Peer{Era: wire.Modern, Version: wire.Rev20260728}
)

const call7 = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}`

// exchanged runs one call and tells in one line what came of it.
func exchanged(ctx context.Context, t *testing.T, c conn) string {
	t.Helper()
	x, err := c.Start(ctx, &Outgoing{ID: 7, Method: "tools/call", Name: "t", Frame: []byte(call7)})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(false)
	var out []string
	for {
		f, err := x.Next(ctx)
		var e *Error
		switch {
		case errors.As(err, &e):
			return strings.Join(append(out, string(e.Reason)+": "+e.Error()), " ")
		case err != nil:
			return strings.Join(append(out, err.Error()), " ")
		case f.Kind == wire.KindResponse:
			return strings.Join(append(out, string(f.Result.Of(f.Raw))), " ")
		case f.Kind == wire.KindError:
			return strings.Join(append(out, "error "+string(f.Error.Of(f.Raw))), " ")
		}
		out = append(out, f.Method)
	}
}

func event(data string) string { return "event: message\ndata: " + data + "\n\n" }
