package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// What a server may send as the answer to a POST, and what the caller gets of it.
func TestAnswersToAPost(t *testing.T) {
	const ok, okFrame = `{"ok":true}`, `{"jsonrpc":"2.0","id":7,"result":{"ok":true}}`
	const note = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	for _, c := range []struct {
		name string
		resp *http.Response
		want string // the beginning
	}{
		{"JSON", respond(200, jsonType, okFrame), ok},
		{"JSON with a charset", respond(200, "Application/JSON; charset=utf-8", okFrame), ok},
		{"JSON of another type", respond(200, "text/plain", okFrame), ok},
		{"JSON behind blanks", respond(200, jsonType, "\r\n "+okFrame), ok},
		{"an id as a string", respond(200, jsonType, strings.Replace(okFrame, "7", `"7"`, 1)), ok},
		{"a stream", respond(200, sseType, event(okFrame)), ok},
		{"a stream with priming and comments", respond(200, sseType+"; charset=utf-8", ": hi\n\nid: 1\ndata:\n\n"+event(note)+event(okFrame)), "notifications/message " + ok},
		{"events of other names", respond(200, sseType, "event: ping\ndata: {}\n\n"+event(okFrame)), ok},
		{"events without a name", respond(200, sseType, "data: "+okFrame+"\n\n"), ok},
		{"a batch", respond(200, jsonType, "["+note+","+okFrame+"]"), "notifications/message " + ok},
		{"a batch in a stream", respond(200, sseType, event("["+note+","+okFrame+"]")), "notifications/message " + ok},
		{"a request of the server", respond(200, sseType, event(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}`)+event(okFrame)), "elicitation/create " + ok},
		{"an error", respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`), `error {"code":-32602,"message":"no"}`},
		{"an error by status", respond(400, jsonType, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`), `error {"code":-32602,"message":"no"}`},
		{"an error without an id", respond(400, jsonType, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`), `error {"code":-32600,"message":"bad"}`},
		{"an error with a foreign id", respond(400, jsonType, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"bad"}}`), `error {"code":-32600,"message":"bad"}`},
		{"an error without an id in a stream", respond(200, sseType, event(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"?"}}`)), "uncertain: the stream ended without an answer"},
		{"a wrong id", respond(200, jsonType, strings.Replace(okFrame, "7", "8", 1)), "transport_error: HTTP 200: an answer without a message"},
		{"a wrong id in a stream", respond(200, sseType, event(strings.Replace(okFrame, "7", "8", 1))), "uncertain: the stream ended without an answer"},
		{"nothing", respond(202, "", ""), "transport_error: HTTP 202: an answer without a message"},
		{"an empty stream", respond(200, sseType, ""), "uncertain: the stream ended without an answer"},
		{"only a notification", respond(200, jsonType, note), "notifications/message uncertain: the stream ended without an answer"},
		{"a page", respond(200, "text/html", "<html>login</html>"), "transport_error: HTTP 200: an answer without a message, text/html"},
		{"a page as an error", respond(502, "text/html", "<html>bad gateway</html>"), "transport_error: HTTP 502: Bad Gateway, text/html"},
		{"JSON that is no message", respond(500, jsonType, `{"detail":"oops"}`), "transport_error: HTTP 500: Internal Server Error"},
		{"JSON that is no message, with success", respond(200, jsonType, `{"detail":"oops"}`), "transport_error: the answer is not valid: "},
		{"broken JSON", respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{`), "transport_error: the answer is not valid: "},
		{"broken JSON in a stream", respond(200, sseType, event(`{"jsonrpc":"2.0","id":7,"result":{`)), "transport_error: the answer is not valid: "},
		{"an empty batch", respond(200, jsonType, `[]`), "transport_error: the answer is not valid: "},
		{"unauthorized", respond(401, "", ""), "unavailable: HTTP 401: Unauthorized (check auth, auth_token and headers)"},
		{"forbidden", respond(403, "text/plain", "no"), "unavailable: HTTP 403: Forbidden (check auth, auth_token and headers), text/plain"},
		{"too many requests", respond(429, "", ""), "unavailable: HTTP 429: Too Many Requests"},
		{"not ready", respond(503, "", ""), "unavailable: HTTP 503: Service Unavailable"},
		{"not found, without a session", respond(404, "", ""), "unavailable: HTTP 404: Not Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return c.resp, nil }}
			if got := exchanged(t.Context(), t, testHTTPConn(t, r, rt, legacyPeer)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			r.wantBudgetWhole()
		})
	}
}

// cutBody ends in the middle.
type cutBody struct{ io.Reader }

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (cutBody) Close() error { return nil }

func TestABodyThatIsCutIsUncertain(t *testing.T) {
	for _, kind := range []string{jsonType, sseType} {
		resp := respond(200, kind, `{"jsonrpc":"2.0"`)
		resp.Body = cutBody{strings.NewReader("data: {\n")}
		rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return resp, nil }}
		got := exchanged(t.Context(), t, testHTTPConn(t, newRig(t), rt, legacyPeer))
		if !strings.HasPrefix(got, "uncertain: the connection was lost") {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func TestAnswersOverTheBound(t *testing.T) {
	big := `{"jsonrpc":"2.0","id":7,"result":{"t":"` + strings.Repeat("x", 2000) + `"}}`
	unknown := respond(200, jsonType, big)
	unknown.ContentLength = -1
	for name, resp := range map[string]*http.Response{"length known": respond(200, jsonType, big), "length unknown": unknown, "stream": respond(200, sseType, event(big))} {
		r := newRig(t)
		r.env.maxFrame = 1000
		rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return resp, nil }}
		got := exchanged(t.Context(), t, testHTTPConn(t, r, rt, legacyPeer))
		if !strings.HasPrefix(got, "transport_error: the message is longer than limits.max_frame_bytes") || r.limit(count.LimitFrame) != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAnAnswerBeyondTheBudgetFailsTheCall(t *testing.T) {
	r := newRig(t)
	r.env.budget = NewBudget(10)
	rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) {
		return respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{}}`), nil
	}}
	if got := exchanged(t.Context(), t, testHTTPConn(t, r, rt, legacyPeer)); !strings.HasPrefix(got, "overloaded: ") {
		t.Errorf("got %s", got)
	}
	if left := r.env.budget.left.Load(); left != 10 {
		t.Errorf("%d bytes are left of 10", left)
	}
}

// A long stream holds of the budget what waits, not what has been read.
func TestALongStreamHoldsLittleOfTheBudget(t *testing.T) {
	r := newRig(t)
	r.env.budget = NewBudget(500)
	note := event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`)
	rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) {
		return respond(200, sseType, strings.Repeat(note, 100)+event(`{"jsonrpc":"2.0","id":7,"result":{}}`)), nil
	}}
	if got := exchanged(t.Context(), t, testHTTPConn(t, r, rt, legacyPeer)); !strings.HasSuffix(got, " {}") {
		t.Errorf("got %s", got)
	}
	if left := r.env.budget.left.Load(); left != 500 {
		t.Errorf("%d bytes are left of 500", left)
	}
}

func TestRedirects(t *testing.T) {
	const okFrame = `{"jsonrpc":"2.0","id":7,"result":{}}`
	for _, c := range []struct {
		name, to string
		status   int
		want     string
		requests int
	}{
		{"same origin", "/other", 307, "{}", 2},
		{"permanent", "http://server.test/other", 308, "{}", 2},
		{"another host", "http://evil.test/mcp", 307, "transport_error: the server redirects to another origin (http://evil.test)", 1},
		{"another port", "http://server.test:81/mcp", 308, "transport_error: the server redirects to another origin", 1},
		{"another scheme", "https://server.test/mcp", 308, "transport_error: the server redirects to another origin", 1},
		{"nowhere", "", 307, "transport_error: HTTP 307 without a usable Location", 1},
		{"for ever", "/mcp", 307, "transport_error: more than 3 redirects", 4},
		{"one that changes the method", "/other", 302, "transport_error: HTTP 302", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := &roundTripper{serve: func(_ int, r *http.Request, body string) (*http.Response, error) {
				if r.URL.Path == "/other" {
					if body != call7 || r.Method != http.MethodPost {
						t.Errorf("after the redirect: %s %s", r.Method, body)
					}
					return respond(200, jsonType, okFrame), nil
				}
				return respond(c.status, "", "", "Location", c.to), nil
			}}
			got := exchanged(t.Context(), t, testHTTPConn(t, newRig(t), rt, legacyPeer))
			if !strings.HasPrefix(got, c.want) || len(rt.requests()) != c.requests {
				t.Errorf("got %s after %d requests, want %s after %d", got, len(rt.requests()), c.want, c.requests)
			}
		})
	}
}

// What never left may be called unavailable; what may have arrived is uncertain. Neither tells the URL, which may hold
// a credential.
func TestLostOnTheWay(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
		down bool
	}{
		{"refused", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, "unavailable: the request did not reach the upstream\ndial tcp: connection refused", true},
		{"TLS", errors.New("x509: certificate signed by unknown authority"), "unavailable: the request did not reach the upstream\nx509", true},
		{"reset", &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset")}, "uncertain: the connection was lost: read tcp: connection reset", false},
		{"end", io.EOF, "uncertain: the connection was lost: EOF", false},
	} {
		rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return nil, c.err }}
		conn := testHTTPConn(t, newRig(t), rt, legacyPeer)
		got := exchanged(t.Context(), t, conn)
		if !strings.HasPrefix(got, c.want) || strings.Contains(got, "hidden") {
			t.Errorf("%s: got %s", c.name, got)
		}
		if isDone(conn) != c.down {
			t.Errorf("%s: the connection is given up: %v", c.name, isDone(conn))
		}
	}
}

func TestACallWhoseTimePassesTellsTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	rt := &roundTripper{serve: func(_ int, r *http.Request, _ string) (*http.Response, error) {
		cancel(errSessionLost)
		return nil, r.Context().Err()
	}}
	if got := exchanged(ctx, t, testHTTPConn(t, newRig(t), rt, legacyPeer)); got != errSessionLost.Error() {
		t.Errorf("got %s", got)
	}
}

func TestHeadersTowardsAServer(t *testing.T) {
	cfg := httpConfig()
	cfg.AuthToken = "secret-token"
	cfg.Headers = map[string]config.Secret{"x-api-key": "k", "accept": "text/html", "MCP-SESSION-ID": "mine", "Host": "other.test"}
	for name, c := range map[string]struct {
		peer *Peer
		out  *Outgoing
		want map[string]string
	}{
		"legacy": {legacyPeer, &Outgoing{ID: 7, Method: "tools/call", Name: "t", Params: []Param{{"X", "1"}}},
			map[string]string{"Mcp-Protocol-Version": "2025-06-18", "Mcp-Session-Id": "s", "Mcp-Method": "", "Mcp-Name": "", "Mcp-Param-X": ""}},
		"older": {&Peer{Era: wire.Legacy, Version: wire.Rev20250326}, &Outgoing{ID: 7, Method: "tools/call"},
			map[string]string{"Mcp-Protocol-Version": "", "Mcp-Session-Id": "s"}},
		"modern": {modernPeer, &Outgoing{ID: 7, Method: "tools/call", Name: "naïve", Params: []Param{{"Region", "eu"}}},
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": wire.EncodeHeader("naïve"), "Mcp-Param-Region": "eu"}},
		"probe": {nil, &Outgoing{ID: 7, Method: "server/discover"},
			map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover", "Mcp-Name": ""}},
		"handshake": {nil, &Outgoing{ID: 7, Method: "initialize"}, map[string]string{"Mcp-Protocol-Version": "", "Mcp-Method": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var host string
			rt := &roundTripper{serve: func(_ int, r *http.Request, _ string) (*http.Response, error) {
				host = r.Host
				return respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{}}`), nil
			}}
			conn, err := newHTTPConn(newRig(t).env, cfg, rt)
			if err != nil {
				t.Fatal(err)
			}
			if c.peer != nil {
				conn.negotiated(c.peer)
				if c.peer.Era == wire.Legacy {
					s := "s"
					conn.session.Store(&s)
				}
			}
			x, _ := conn.Start(t.Context(), c.out)
			answerOf(t.Context(), t, x)
			x.Close(false)
			h := rt.got[0]
			for k, v := range c.want {
				if got := h.Get(k); got != v {
					t.Errorf("%s is %q, want %q", k, got, v)
				}
			}
			for k, v := range map[string]string{"Authorization": "Bearer secret-token", "X-Api-Key": "k", "Content-Type": jsonType, "Accept": jsonType + ", " + sseType} {
				if got := strings.Join(h[k], "|"); got != v {
					t.Errorf("%s is %q, want %q", k, got, v)
				}
			}
			if host != "other.test" {
				t.Errorf("the host is %s", host)
			}
			conn.Close()
			if last := rt.requests()[len(rt.requests())-1]; c.peer != nil && c.peer.Era == wire.Legacy && last != "DELETE /mcp" {
				t.Errorf("the session is not ended: %s", last)
			}
		})
	}
}

func TestCancelOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		peer *Peer
		want []string
	}{
		"legacy": {legacyPeer, []string{`POST /mcp {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"why"}}`}},
		"modern": {modernPeer, nil},
	} {
		rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return respond(202, "", ""), nil }}
		if err := testHTTPConn(t, newRig(t), rt, c.peer).Cancel(t.Context(), 7, "why"); err != nil {
			t.Error(err)
		}
		if got := rt.requests(); strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%s: sent %q", name, got)
		}
	}
	rt := &roundTripper{serve: func(int, *http.Request, string) (*http.Response, error) { return respond(500, "", ""), nil }}
	wantReason(t, testHTTPConn(t, newRig(t), rt, legacyPeer).Notify(t.Context(), []byte(`{}`)), ReasonTransport)
}

// What comes on the standing stream belongs to no call: notifications are passed on, requests are refused.
func TestNewsOfTheStandingStream(t *testing.T) {
	r := newRig(t)
	replies := make(chan string, 2)
	streams := 0
	conn := testHTTPConn(t, r, &roundTripper{serve: func(_ int, req *http.Request, body string) (*http.Response, error) {
		if req.Method == http.MethodPost {
			replies <- body
			return respond(202, "", ""), nil
		}
		if streams++; streams > 1 {
			return respond(405, "", ""), nil
		}
		return respond(200, sseType, event(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)+
			event(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)+event(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage"}`)+
			event(`{"jsonrpc":"2.0","id":3,"result":{}}`)+event(`no JSON`)+"event: other\ndata: x\n\n"), nil
	}}, legacyPeer)
	at := &place{}
	if !conn.readStream(t.Context(), at, func() {}) {
		t.Error("a stream that ended is not opened again")
	}
	if conn.readStream(t.Context(), at, func() {}) {
		t.Error("a server without a stream is asked again")
	}
	got := []string{<-replies, <-replies}
	for _, want := range []string{`"id":1,"result":{}`, `"id":2,"error":{"code":-32601`} {
		if !strings.Contains(strings.Join(got, " "), want) {
			t.Errorf("the server was told %q, want %s", got, want)
		}
	}
	if n := r.noted(); !slices.Equal(n, []string{"notifications/tools/list_changed", "missed"}) {
		t.Errorf("passed on: %q", n)
	}
	if r.dropped(count.DropAnswer) != 1 || r.dropped(count.DropRequest) != 1 {
		t.Error("what was dropped is not counted")
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, u := range []string{"", "::", "ftp://x/", "http:///mcp", "/mcp"} {
		cfg := httpConfig()
		cfg.URL = config.Secret(u)
		if _, err := newHTTPConn(&env{log: zap.NewNop()}, cfg, nil); err == nil || u != "" && strings.Contains(err.Error(), u) {
			t.Errorf("%q: %v", u, err)
		}
	}
}
