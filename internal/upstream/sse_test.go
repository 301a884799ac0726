package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// sseServer is a server of the older HTTP transport without a network: w is its stream.
type sseServer struct {
	*roundTripper
	w     *io.PipeWriter
	r     *io.PipeReader
	posts chan string // path and body
}

func newSSEServer(t *testing.T) *sseServer {
	s := &sseServer{posts: make(chan string, 100)}
	r, w := io.Pipe()
	s.r, s.w = r, w
	s.roundTripper = &roundTripper{serve: func(_ int, req *http.Request, body string) (*http.Response, error) {
		if req.Method == http.MethodPost {
			s.posts <- req.URL.RequestURI() + " " + body
			return respond(202, "", ""), nil
		}
		context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(req.Context().Err()) })
		resp := respond(200, sseType, "")
		resp.Body, resp.ContentLength = r, -1
		return resp, nil
	}}
	t.Cleanup(func() { _ = w.Close() })
	return s
}

func (s *sseServer) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.w, text); err != nil {
		t.Errorf("writing to the stream: %v", err)
	}
}

func sseConfig() *config.Server {
	cfg := serverConfig(config.TransportSSE)
	cfg.URL = "http://server.test/base/sse"
	return cfg
}

func TestWhereTheEndpointEventLeads(t *testing.T) {
	for _, c := range []struct{ name, events, want, err string }{
		{"absolute path", "event: endpoint\ndata: /messages?id=1\n\n", "/messages?id=1", ""},
		{"relative", "event: endpoint\ndata: messages\n\n", "/base/messages", ""},
		{"whole URL", "event: endpoint\ndata: http://server.test/m\n\n", "/m", ""},
		{"after something else", ": hi\n\nevent: hello\ndata: /wrong\n\nevent: endpoint\ndata: /m\n\n", "/m", ""},
		{"another host", "event: endpoint\ndata: http://evil.test/m\n\n", "", "another origin (http://evil.test)"},
		{"another port", "event: endpoint\ndata: http://server.test:8080/m\n\n", "", "another origin"},
		{"another scheme", "event: endpoint\ndata: https://server.test/m\n\n", "", "another origin"},
		{"without a scheme", "event: endpoint\ndata: //evil.test/m\n\n", "", "another origin"},
		{"no URL", "event: endpoint\ndata: http://[::1\n\n", "", "holds no URL"},
		{"never", ": ping\n\n", "", "no endpoint event"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSSEServer(t)
				go func() {
					s.write(t, c.events)
					if c.name == "never" {
						_ = s.w.Close()
					}
				}()
				conn, err := dialSSE(t.Context(), newRig(t).env, sseConfig(), s)
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("the error is %v, want %s", err, c.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.Notify(t.Context(), []byte(`{"a":1}`)); err != nil {
					t.Error(err)
				}
				if got := <-s.posts; got != c.want+` {"a":1}` {
					t.Errorf("posted to %s, want %s", got, c.want)
				}
				conn.Close()
			})
		})
	}
}

func TestTheStreamMayHaveMovedWithinItsOrigin(t *testing.T) {
	for _, tt := range []struct {
		status   int
		location string
		posted   string
		err      string
	}{
		{302, "/moved/sse", "/moved/messages", ""},
		{301, "sse/", "/base/sse/messages", ""},
		{303, "http://server.test/x/", "/x/messages", ""},
		{307, "/moved/sse", "/moved/messages", ""},
		{308, "/moved/sse", "/moved/messages", ""},
		{302, "http://evil.test/sse", "", "another origin (http://evil.test)"},
		{307, "https://server.test/sse", "", "another origin"},
		{302, "", "", "without a usable Location"},
		{302, "/base/sse", "", "more than 3 redirects"},
	} {
		t.Run(fmt.Sprint(tt.status, tt.location), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSSEServer(t)
				serve := s.serve
				s.serve = func(n int, req *http.Request, body string) (*http.Response, error) {
					if req.Method == http.MethodGet && req.URL.Path == "/base/sse" {
						resp := respond(tt.status, "", "")
						if tt.location != "" {
							resp.Header.Set("Location", tt.location)
						}
						return resp, nil
					}
					return serve(n, req, body)
				}
				go func() { _, _ = io.WriteString(s.w, "event: endpoint\ndata: messages\n\n") }()
				conn, err := dialSSE(t.Context(), newRig(t).env, sseConfig(), s)
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("the error is %v, want %s", err, tt.err)
					}
					_ = s.r.Close()
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := conn.Notify(t.Context(), []byte(`{}`)); err != nil {
					t.Error(err)
				}
				if got := <-s.posts; got != tt.posted+" {}" {
					t.Errorf("posted to %s, want %s", got, tt.posted)
				}
				conn.Close()
			})
		})
	}
}

func TestAStreamThatNeverTellsWhereToPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSSEServer(t)
		go s.write(t, ": ping\n\n")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errBudget)
		defer cancel()
		began := time.Now()
		_, err := dialSSE(ctx, newRig(t).env, sseConfig(), s)
		if !errors.Is(err, errNotSSE) || !errors.Is(err, errBudget) || time.Since(began) != 5*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestDialingWhatIsNoEventStream(t *testing.T) {
	for _, resp := range []*http.Response{respond(405, "", ""), respond(200, jsonType, "{}"), respond(500, sseType, "")} {
		rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return resp, nil }}
		_, err := dialSSE(t.Context(), newRig(t).env, sseConfig(), rt)
		var se *statusError
		if !errors.As(err, &se) || se.code != resp.StatusCode {
			t.Errorf("%d: %v", resp.StatusCode, err)
		}
	}
	rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return nil, io.EOF }}
	_, err := dialSSE(t.Context(), newRig(t).env, sseConfig(), rt)
	wantReason(t, err, ReasonUncertain)
}

func TestCallsOverTheOlderTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		s := newSSEServer(t)
		go s.write(t, "event: endpoint\ndata: /m\n\n")
		conn, err := dialSSE(t.Context(), r.env, sseConfig(), s)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if got := <-s.posts; got != "/m "+call7 {
				t.Errorf("posted %s", got)
			}
			s.write(t, event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)+event(`no JSON`)+
				event(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)+"event: other\ndata: x\n\n"+
				event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)+
				event(`{"jsonrpc":"2.0","id":7,"result":{"ok":true}}`))
		}()
		if got := exchanged(t.Context(), t, conn); got != `notifications/progress {"ok":true}` {
			t.Errorf("got %s", got)
		}
		if got := <-s.posts; got != `/m {"jsonrpc":"2.0","id":"p","result":{}}` {
			t.Errorf("the ping is answered by %s", got)
		}
		if err := conn.Cancel(t.Context(), 8, ""); err != nil {
			t.Error(err)
		}
		if got := <-s.posts; got != `/m {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}` {
			t.Errorf("the cancel is %s", got)
		}
		if got := r.noted(); len(got) != 1 {
			t.Errorf("passed on: %q", got)
		}
		conn.Close()
		r.wantBudgetWhole()
	})
}

func TestTheEndOfTheStreamEndsItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.env.maxFrame = 500
		s := newSSEServer(t)
		go s.write(t, "event: endpoint\ndata: /m\n\n")
		conn, err := dialSSE(t.Context(), r.env, sseConfig(), s)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-s.posts
			s.write(t, event(`{"jsonrpc":"2.0","id":7,"result":{"t":"`+strings.Repeat("x", 1000)+`"}}`))
			<-s.posts
			_ = s.w.Close()
		}()
		if got := exchanged(t.Context(), t, conn); !strings.HasPrefix(got, "transport_error: ") || r.limit(count.LimitFrame) != 1 {
			t.Errorf("a message that is too long: %s", got)
		}
		if got := exchanged(t.Context(), t, conn); !strings.HasPrefix(got, "uncertain: the event stream ended") {
			t.Errorf("a stream that ends: %s", got)
		}
		<-conn.Done()
		if failureOf(conn.Err(), time.Now()).Stage != "run" {
			t.Errorf("the connection ends with %v", conn.Err())
		}
		conn.Close()
	})
}

func TestAPostThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSSEServer(t)
		go s.write(t, "event: endpoint\ndata: /m\n\n")
		conn, err := dialSSE(t.Context(), newRig(t).env, sseConfig(), s)
		if err != nil {
			t.Fatal(err)
		}
		serve := s.serve
		s.serve = func(n int, r *http.Request, body string) (*http.Response, error) {
			if r.Method == http.MethodPost {
				return respond(400, "", ""), nil
			}
			return serve(n, r, body)
		}
		if got := exchanged(t.Context(), t, conn); !strings.HasPrefix(got, "transport_error: posting to /m, which the stream at /") {
			t.Errorf("got %s", got)
		}
		conn.Close()
	})
}
