package roundtrip

import (
	"bufio"
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
)

// plainServer answers the n-th connection's requests by script: each answer is written as it stands.
func plainServer(t *testing.T, answers ...func(conn net.Conn, r *bufio.Reader)) (url string, conns *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(conns.Add(1)) - 1
			go func() {
				defer c.Close()
				answers[min(n, len(answers)-1)](c, bufio.NewReader(c))
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String() + "/mcp", conns
}

// each answers every request of a connection with these bytes.
func each(answer string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, answer)
		}
	}
}

func direct(t *testing.T) *directTransport {
	tr := newDirectTransport((&net.Dialer{}).DialContext)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func ask(ctx context.Context, t *testing.T, tr http.RoundTripper, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

func TestAnswersOfEveryFraming(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		conns        int64 // after two requests
	}{
		"length":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", 1},
		"chunked":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", "200 ok", 1},
		"no body":         {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "202 ", 1},
		"no content":      {"HTTP/1.1 204 No Content\r\n\r\n", "204 ", 1},
		"interim":         {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", 1},
		"closed after it": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", "200 ok", 2},
		"more than said":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n", "200 ok", 2},
		"old revision":    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok", 2},
	} {
		t.Run(name, func(t *testing.T) {
			url, conns := plainServer(t, each(c.answer))
			tr := direct(t)
			for range 2 {
				if got, err := ask(t.Context(), t, tr, url); err != nil || got != c.want {
					t.Errorf("got %q, %v; want %q", got, err, c.want)
				}
			}
			if n := conns.Load(); n != c.conns {
				t.Errorf("%d connections, want %d", n, c.conns)
			}
		})
	}
}

func TestAConnectionThatDiedIdleIsNotUsed(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	closed := make(chan struct{})
	url, conns := plainServer(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = http.ReadRequest(r)
		_, _ = io.WriteString(c, ok)
		_ = c.Close()
		close(closed)
	}, each(ok))
	tr := direct(t)
	if got, err := ask(t.Context(), t, tr, url); err != nil || got != "200 ok" {
		t.Fatalf("got %q, %v", got, err)
	}
	<-closed
	waitFor(t, func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, list := range tr.idle {
			return len(list) == 1 && !alive(list[0].Conn) && time.Since(list[0].since) > freshFor
		}
		return false
	})
	if got, err := ask(t.Context(), t, tr, url); err != nil || got != "200 ok" {
		t.Errorf("the next request: %q, %v", got, err)
	}
	if n := conns.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatal("it does not come")
}

func TestTheEndOfTheContextEndsWaitingAndReading(t *testing.T) {
	started := make(chan struct{}, 2)
	for name, head := range map[string]string{"before the head": "", "in the body": "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\npart"} {
		t.Run(name, func(t *testing.T) {
			url, _ := plainServer(t, func(c net.Conn, r *bufio.Reader) {
				_, _ = http.ReadRequest(r)
				_, _ = io.WriteString(c, head)
				started <- struct{}{}
				_, _ = io.Copy(io.Discard, r) // until the other side closes
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-started; cancel() }()
			if _, err := ask(ctx, t, direct(t), url); err == nil {
				t.Error("the request succeeds")
			}
		})
	}
}

func TestABrokenAnswerIsAnError(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":       "",
		"garbage":       "who is there\r\n\r\n",
		"cut head":      "HTTP/1.1 200 OK\r\nContent-",
		"cut body":      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
		"cut chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"endless head":  "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead),
		"many interims": strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := plainServer(t, func(c net.Conn, r *bufio.Reader) {
				_, _ = http.ReadRequest(r)
				_, _ = io.WriteString(c, answer)
			})
			if got, err := ask(t.Context(), t, direct(t), url); err == nil {
				t.Errorf("it is taken for %q", got)
			}
		})
	}
}

func TestADialThatFailsIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = ask(t.Context(), t, direct(t), "http://"+l.Addr().String())
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
}

func TestManyRequestsAtOnceUseManyConnections(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, string(b))
	}))
	t.Cleanup(s.Close)
	tr := direct(t)
	errs := make(chan error, 50)
	for range cap(errs) {
		go func() {
			for range 20 {
				if got, err := ask(t.Context(), t, tr, s.URL); err != nil || got != "200 hello" {
					errs <- fmt.Errorf("%q, %w", got, err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
