package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// pipes are the connections of a server without a network, so that its time is that of a bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// inBubble serves with a door in a bubble of synctest and gives one connection with it.
func inBubble(t *testing.T, serve http.HandlerFunc, f func(c net.Conn, in *bufio.Reader, hit *[]string)) {
	synctest.Test(t, func(t *testing.T) {
		mcp := &fakeMCP{serve: serve}
		var hit []string
		o := Options{Registry: prometheus.NewRegistry(), MCP: mcp, Listen: "127.0.0.1:8080", Status: func() Status { return Status{} },
			Auth:  auth.New(config.Auth{Mode: config.AuthTokens, Tokens: []config.Token{{Name: "alice", Token: "alice-secret"}}}),
			Limit: func(name string) { hit = append(hit, name) }}
		o.Proxy.Limits.MaxBodyBytes = 16 << 20
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		s := NewServer(t.Context(), d.Main(), zap.NewNop())
		go s.Serve(l)
		ours, theirs := net.Pipe()
		l.conns <- theirs
		defer func() {
			ours.Close()
			_ = s.Close()
			pass(time.Minute) // for those who still send
		}()
		f(ours, bufio.NewReader(ours), &hit)
	})
}

func post(token string, size int) string {
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", token, size)
}

func pass(d time.Duration) { <-time.After(d) }

// reads answers with how much of the body came, and what ended it.
func reads(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	fmt.Fprint(w, len(b), " ", errors.Is(err, os.ErrDeadlineExceeded))
}

func wantAnswer(t *testing.T, in *bufio.Reader, status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != status || body != "" && string(b) != body {
		t.Errorf("HTTP %d %q, want %d %q", resp.StatusCode, b, status, body)
	}
}

// trickle sends a byte now and then until the connection ends.
func trickle(c net.Conn) {
	for {
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
		pass(7 * time.Second)
	}
}

func TestABodyThatTricklesIsNotWaitedFor(t *testing.T) {
	inBubble(t, reads, func(c net.Conn, in *bufio.Reader, hit *[]string) {
		began := time.Now()
		io.WriteString(c, post("alice-secret", 1000))
		go trickle(c)
		wantAnswer(t, in, 200, "5 true")
		if took := time.Since(began); took != bodyGrace {
			t.Errorf("it took %s", took)
		}
		if got := strings.Join(*hit, " "); got != "body_time" {
			t.Errorf("counted %q", got)
		}
	})
}

func TestABodyOfSomebodyUnknownIsNotWaitedFor(t *testing.T) {
	inBubble(t, reads, func(c net.Conn, in *bufio.Reader, _ *[]string) {
		began := time.Now()
		io.WriteString(c, post("nobody", 1000))
		go trickle(c)
		wantAnswer(t, in, 401, "")
		if took := time.Since(began); took > bodyGrace {
			t.Errorf("it took %s", took)
		}
	})
}

func TestASlowBodyThatComesOnHasTime(t *testing.T) {
	inBubble(t, reads, func(c net.Conn, in *bufio.Reader, hit *[]string) {
		const size = 4 << 20
		io.WriteString(c, post("alice-secret", size))
		began := time.Now()
		go func() {
			for range size / (20 << 10) {
				io.WriteString(c, strings.Repeat("x", 20<<10))
				pass(time.Second)
			}
			io.WriteString(c, strings.Repeat("x", size%(20<<10)))
		}()
		wantAnswer(t, in, 200, fmt.Sprint(size, " false"))
		if took := time.Since(began); took < 3*time.Minute || len(*hit) > 0 {
			t.Errorf("it took %s, and %q was counted", took, *hit)
		}
	})
}

func TestOnceTheBodyIsThereACallMayTakeItsTime(t *testing.T) {
	for _, size := range []int{1, 0} {
		inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadFull(r.Body, make([]byte, r.ContentLength))
			select {
			case <-time.After(10 * time.Minute):
				fmt.Fprint(w, "late")
			case <-r.Context().Done():
				fmt.Fprint(w, context.Cause(r.Context()))
			}
		}, func(c net.Conn, in *bufio.Reader, _ *[]string) {
			for range 2 {
				io.WriteString(c, post("alice-secret", size)+strings.Repeat("x", size))
				wantAnswer(t, in, 200, "late")
				pass(time.Minute)
			}
		})
	}
}
