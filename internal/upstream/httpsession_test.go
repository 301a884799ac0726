package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// A server that lost our session has not run the call: the handshake is done again, once for all, and the call is sent
// once more.
func TestALostSessionIsReplacedOnce(t *testing.T) {
	for _, c := range []struct {
		name      string
		serve     func(session string) *http.Response
		redo      error
		want      string
		calls     int
		wantsLost int
	}{
		{"lost once", func(s string) *http.Response {
			if s == "new" {
				return respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{}}`)
			}
			return respond(404, "", "")
		}, nil, "{}", 2, 1},
		{"lost again", func(string) *http.Response { return respond(404, "", "") }, nil, "unavailable: the upstream no longer knows our session", 2, 1},
		{"no new one", func(string) *http.Response { return respond(404, "", "") }, errors.New("refused"), "unavailable: the upstream no longer knows our session\nrefused", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			rt := &roundTripper{serve: func(_ int, r *http.Request, _ string) (*http.Response, error) {
				if r.Method != http.MethodPost {
					return respond(405, "", ""), nil
				}
				return c.serve(r.Header.Get("Mcp-Session-Id")), nil
			}}
			conn := testHTTPConn(t, newRig(t), rt, legacyPeer)
			old, fresh, lost := "old", "new", 0
			conn.session.Store(&old)
			conn.lost = func() { lost++ }
			conn.redo = func(context.Context, *httpConn) error {
				if c.redo == nil {
					conn.session.Store(&fresh)
				}
				return c.redo
			}
			if got := exchanged(t.Context(), t, conn); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			conn.wg.Stop()
			posts := 0
			for _, s := range rt.requests() {
				if strings.HasPrefix(s, "POST") {
					posts++
				}
			}
			if posts != c.calls || lost != c.wantsLost {
				t.Errorf("%d posts and %d replaced sessions, want %d and %d", posts, lost, c.calls, c.wantsLost)
			}
		})
	}
}

// A call that gives up while the session is being replaced leaves the next one the chance to replace it.
func TestGivingUpWhileASessionIsReplaced(t *testing.T) {
	rt := &roundTripper{serve: func(_ int, r *http.Request, _ string) (*http.Response, error) {
		switch {
		case r.Method != http.MethodPost:
			return respond(405, "", ""), nil
		case r.Header.Get("Mcp-Session-Id") == "new":
			return respond(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{}}`), nil
		}
		return respond(404, "", ""), nil
	}}
	conn := testHTTPConn(t, newRig(t), rt, legacyPeer)
	old, fresh := "old", "new"
	conn.session.Store(&old)
	ctx, cancel := context.WithCancel(t.Context())
	conn.redo = func(ctx context.Context, _ *httpConn) error { cancel(); return ctx.Err() }
	if got := exchanged(ctx, t, conn); got == "{}" {
		t.Errorf("the first call got %s", got)
	}
	conn.redo = func(context.Context, *httpConn) error { conn.session.Store(&fresh); return nil }
	if got := exchanged(t.Context(), t, conn); got != "{}" {
		t.Errorf("the second call got %s", got)
	}
}
