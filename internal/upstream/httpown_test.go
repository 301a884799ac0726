package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// asker is a server that asks on the standing stream while it works on calls, and answers them on their own streams.
type asker struct {
	*roundTripper
	standing *io.PipeWriter
	calls    *io.PipeWriter
	replies  chan string
}

func newAsker() *asker {
	standing, say := io.Pipe()
	posts, answer := io.Pipe()
	a := &asker{standing: say, calls: answer, replies: make(chan string, 4)}
	a.roundTripper = &roundTripper{serve: func(_ int, r *http.Request, body string) (*http.Response, error) {
		streamed := respond(200, sseType, "")
		switch {
		case r.Method == http.MethodGet:
			streamed.Body = standing
		case strings.Contains(body, `"method":"tools/call"`):
			streamed.Body = posts
		default:
			a.replies <- body
			return respond(202, "", ""), nil
		}
		return streamed, nil
	}}
	return a
}

func say(t *testing.T, w io.Writer, data string) {
	t.Helper()
	if _, err := io.WriteString(w, event(data)); err != nil {
		t.Fatal(err)
	}
}

const (
	askedAside = `{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"?"}}`
	answer7    = `{"jsonrpc":"2.0","id":7,"result":{"ok":true}}`
)

func startCall(ctx context.Context, t *testing.T, c conn, id uint64) Exchange {
	t.Helper()
	x, err := c.Start(ctx, &Outgoing{ID: id, Method: "tools/call", Name: "t", Frame: []byte(call7)})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// What a server asks on its standing stream goes to the only call where all calls are one client's, and is refused
// otherwise.
func TestQuestionsOnTheStandingStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		own    bool
		others int // calls beside this one
		want   string
	}{
		{"a session of one client", true, 0, "elicitation/create"},
		{"a session of one client, with another call", true, 1, ""},
		{"a session of everybody", false, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, a := newRig(t), newAsker()
				r.env.own = c.own
				conn := testHTTPConn(t, r, a, legacyPeer)
				conn.opened()
				for i := range c.others {
					defer startCall(t.Context(), t, conn, uint64(100+i)).Close(false)
				}
				x := startCall(t.Context(), t, conn, 7)
				defer x.Close(false)
				go func() {
					say(t, a.standing, askedAside)
					if c.want != "" {
						<-a.replies
					} else if reply := <-a.replies; !strings.Contains(reply, "decline") {
						t.Errorf("the server got %s, want a refusal", reply)
					}
					say(t, a.calls, answer7)
				}()
				var got string
				for {
					f, err := x.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if f.Kind == wire.KindResponse {
						break
					}
					got += f.Method
					if err := x.Respond(t.Context(), answerTo(f, `"result":{"action":"accept"}`)); err != nil {
						t.Fatal(err)
					}
				}
				if got != c.want {
					t.Errorf("the call was asked %q, want %q", got, c.want)
				}
				a.end()
			})
		})
	}
}

// end ends the streams, so that nothing waits for the server any more.
func (a *asker) end() {
	_ = a.standing.CloseWithError(io.EOF)
	_ = a.calls.CloseWithError(io.EOF)
}

func TestACallInASessionOfItsOwnThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a := newRig(t), newAsker()
		r.env.own = true
		ctx, cancel := context.WithCancelCause(t.Context())
		a.serve = func(_ int, req *http.Request, _ string) (*http.Response, error) {
			<-req.Context().Done()
			return nil, context.Cause(req.Context())
		}
		conn := testHTTPConn(t, r, a, legacyPeer)
		x := startCall(ctx, t, conn, 7)
		gone := errors.New("nobody waits")
		go cancel(gone)
		if _, err := x.Next(ctx); !errors.Is(err, gone) {
			t.Errorf("Next = %v, want the cause", err)
		}
		x.Close(true)
		if conn.calls.only() != nil {
			t.Error("the call is still known")
		}
		r.wantBudgetWhole()
		a.end()
	})
}

// The first call of a session must not come before the server can ask.
func TestASessionOfOneClientListensFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, a := newRig(t), newAsker()
		r.env.own = true
		release := make(chan struct{})
		serve := a.serve
		a.serve = func(n int, req *http.Request, body string) (*http.Response, error) {
			<-release
			return serve(n, req, body)
		}
		conn := testHTTPConn(t, r, a, legacyPeer)
		opened := make(chan struct{})
		go func() {
			conn.opened()
			close(opened)
		}()
		synctest.Wait()
		select {
		case <-opened:
			t.Fatal("the session is open before the server listens")
		default:
		}
		close(release)
		<-opened
		a.end()
	})
}
