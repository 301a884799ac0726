package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/cheapmcp"
)

const patience = 20 * time.Second

func targetAt(server *httptest.Server, era Era, size int) *Target {
	return &Target{
		Addr: server.Listener.Addr().String(), Path: "/mcp", Era: era,
		Method: "tools/call", Tool: cheapmcp.TextTool(size), Text: size,
	}
}

func dial(t *testing.T, target *Target) (*Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := Dial(ctx, target)
	if err == nil {
		t.Cleanup(func() { client.conn.Close() })
	}
	return client, err
}

// changing serves cheapmcp with answers that change alters; it is told how
// many requests for tools came before.
func changing(t *testing.T, tools int, change func(n int64, answer []byte) []byte) *httptest.Server {
	inner := cheapmcp.Handler(cheapmcp.New(tools))
	var seen atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(request))
		recorder := httptest.NewRecorder()
		inner.ServeHTTP(recorder, r)
		answer := recorder.Body.Bytes()
		if bytes.Contains(request, []byte(`"tools/`)) {
			answer = change(seen.Add(1)-1, answer)
		}
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		if bytes.HasPrefix(answer, []byte("data:")) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Del("Content-Length")
		}
		w.WriteHeader(recorder.Code)
		w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

func unchanged(_ int64, answer []byte) []byte { return answer }

func TestCalls(t *testing.T) {
	framings := map[string]func(int64, []byte) []byte{
		"json":   unchanged,
		"events": func(_ int64, answer []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", answer) },
	}
	for framing, change := range framings {
		for _, era := range []Era{Legacy, Modern} {
			for _, size := range cheapmcp.TextSizes() {
				t.Run(fmt.Sprint(framing, era, size), func(t *testing.T) {
					var stop atomic.Bool
					target := targetAt(changing(t, 0, func(n int64, answer []byte) []byte {
						stop.Store(n == 20)
						return change(n, answer)
					}), era, size)
					client, err := dial(t, target)
					if err != nil {
						t.Fatal(err)
					}
					calls, err := client.Run(&stop, time.Now().Add(patience))
					if calls != 20 || err != nil {
						t.Errorf("%d calls of 20: %v", calls, err)
					}
					if err := client.Close(time.Now().Add(patience)); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

func TestLists(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		target := targetAt(changing(t, 1000, unchanged), era, 0)
		target.Method, target.Tool, target.Tools = "tools/list", "", 1000
		if _, err := dial(t, target); err != nil {
			t.Error(err)
		}
		target.Tools = 999
		if _, err := dial(t, target); !errors.Is(err, ErrWrongAnswer) {
			t.Errorf("one tool too many: %v", err)
		}
	}
}

// A wrong answer is noticed at once, whether it is the first or a later one.
func TestWrongAnswers(t *testing.T) {
	tests := map[string]func(answer []byte) []byte{
		"another id": func(a []byte) []byte {
			at := bytes.Index(a, []byte(`"id":`)) + len(`"id":`)
			a[at+3] ^= 1
			return a
		},
		"too short":     func(a []byte) []byte { return bytes.Replace(a, []byte("seven"), []byte("six"), 1) },
		"too long":      func(a []byte) []byte { return bytes.Replace(a, []byte("seven"), []byte("seventeen"), 1) },
		"error":         func([]byte) []byte { return []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}`) },
		"empty":         func([]byte) []byte { return nil },
		"not an answer": func([]byte) []byte { return []byte("data: {}\n\n") },
	}
	for name, spoil := range tests {
		for _, era := range []Era{Legacy, Modern} {
			for _, at := range []int64{0, 5} {
				t.Run(fmt.Sprint(name, era, at), func(t *testing.T) {
					server := changing(t, 0, func(n int64, answer []byte) []byte {
						if n == at {
							return spoil(answer)
						}
						return answer
					})
					client, err := dial(t, targetAt(server, era, 100))
					if at == 0 {
						if !errors.Is(err, ErrWrongAnswer) {
							t.Errorf("got %v", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					var never atomic.Bool
					calls, err := client.Run(&never, time.Now().Add(patience))
					if calls != at-1 || !errors.Is(err, ErrWrongAnswer) {
						t.Errorf("after %d calls: %v", calls, err)
					}
				})
			}
		}
	}
}

func TestWrongFirstAnswers(t *testing.T) {
	tests := map[string]struct {
		era      Era
		old, new string
	}{
		"tool error":             {Legacy, `"result":{`, `"result":{"isError":true,`},
		"no result type":         {Modern, `"resultType":"complete"`, `"other":"complete"`},
		"input required":         {Modern, `"resultType":"complete"`, `"resultType":"input_required"`},
		"text of another length": {Legacy, `seven`, `six`},
		"two blocks":             {Legacy, `"content":[`, `"content":[{"type":"text","text":"a"},`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := changing(t, 0, func(_ int64, answer []byte) []byte {
				return bytes.Replace(answer, []byte(test.old), []byte(test.new), 1)
			})
			if _, err := dial(t, targetAt(server, test.era, 100)); !errors.Is(err, ErrWrongAnswer) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWrongStatus(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, era := range []Era{Legacy, Modern} {
		_, err := dial(t, targetAt(server, era, 100))
		if !errors.Is(err, ErrWrongAnswer) || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v", era, err)
		}
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		conn, err := silent.Accept()
		if err == nil {
			defer conn.Close()
			conn.Read(make([]byte, 1)) // the request is there: the client waits
		}
		cancel(reason)
	}()
	target := &Target{Addr: silent.Addr().String(), Path: "/mcp", Era: Modern, Method: "tools/list"}
	if _, err := Dial(ctx, target); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
}

func TestIDsOfTwoClientsDiffer(t *testing.T) {
	server := changing(t, 0, unchanged)
	one, err := dial(t, targetAt(server, Modern, 100))
	if err != nil {
		t.Fatal(err)
	}
	two, err := dial(t, targetAt(server, Modern, 100))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(one.id[:4], two.id[:4]) || len(one.id) != idDigits || len(two.id) != idDigits {
		t.Errorf("%s and %s", one.id, two.id)
	}
}

func TestNextID(t *testing.T) {
	c := &Client{id: []byte("109")}
	c.nextID()
	if string(c.id) != "110" {
		t.Errorf("got %s", c.id)
	}
}
