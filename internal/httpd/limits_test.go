package httpd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func bodyLimit(n int64) change {
	return proxyIs(func(p *config.Proxy) { p.Limits.MaxBodyBytes = n })
}

// readBody answers with the size of the body, or as the protocol does when the body is over the limit.
func readBody(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		http.Error(w, fmt.Sprint("limit ", over.Limit, " after ", len(b)), http.StatusRequestEntityTooLarge)
		return
	}
	fmt.Fprint(w, len(b), " ", err)
}

func TestBodyLimit(t *testing.T) {
	const limit = 1000
	h := open(t, bodyLimit(limit))
	h.mcp.answer(readBody)
	for _, size := range []int{1, limit - 1, limit, limit + 1, 100 * limit} {
		for _, chunked := range []bool{false, true} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", size))
			if chunked {
				body = io.MultiReader(body) // hides the length
			}
			r, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/mcp", body)
			if err != nil {
				t.Fatal(err)
			}
			a := h.do(r)
			switch {
			case size <= limit && (a.StatusCode != http.StatusOK || a.body != fmt.Sprint(size, " <nil>")):
				t.Errorf("%d bytes, chunked %v: HTTP %d %q", size, chunked, a.StatusCode, a.body)
			case size > limit && chunked && (a.StatusCode != http.StatusRequestEntityTooLarge || a.body != "limit 1000 after 1000\n"):
				t.Errorf("%d bytes, chunked: HTTP %d %q", size, a.StatusCode, a.body)
			case size > limit && !chunked:
				if e := h.rpcError(a, http.StatusRequestEntityTooLarge); !strings.Contains(e.Message, "proxy.limits.max_body_bytes") {
					t.Errorf("the message is %q", e.Message)
				}
			}
		}
	}
	if got := h.limitsHit(); got != "body body body body" {
		t.Errorf("counted %q", got)
	}
}

// rawConn speaks HTTP by hand on one connection.
type rawConn struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (h *house) raw() rawConn {
	h.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return rawConn{h.t, c, bufio.NewReader(c)}
}

func (c rawConn) ask(text string) answer {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	resp.Body.Close()
	return answer{resp, string(body)}
}

func TestConnectionGoesOnAfterTooLongABody(t *testing.T) {
	for limit, size := range map[int64]int{1000: 1 << 20, 16 << 20: 20 << 20} {
		h := open(t, bodyLimit(limit))
		h.mcp.answer(readBody)
		c := h.raw()
		const head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
		big := strings.Repeat("x", size)
		for _, text := range []string{
			head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(big), big),
			head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(big), big),
		} {
			if a := c.ask(text); a.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("HTTP %d %s", a.StatusCode, a.body)
			}
			if a := c.ask(head + "Content-Length: 2\r\n\r\n{}"); a.StatusCode != http.StatusOK || a.body != "2 <nil>" {
				t.Fatalf("the next request: HTTP %d %s", a.StatusCode, a.body)
			}
		}
	}
}

// A client that asks first must not be told to send what will be refused.
func TestExpectContinueIsAnsweredAtOnce(t *testing.T) {
	h := open(t, bodyLimit(1000))
	a := h.raw().ask("POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n")
	h.rpcError(a, http.StatusRequestEntityTooLarge)
}

func TestInFlightLimit(t *testing.T) {
	h := open(t, proxyIs(func(p *config.Proxy) { p.Limits.MaxInFlight = 2 }))
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	h.mcp.answer(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	codes := make(chan int, 10)
	send := func(method string, headers ...string) {
		codes <- h.ask(method, h.url+"/mcp", "", headers...).StatusCode
	}
	for range 2 {
		go send("POST")
		<-arrived
	}
	a := h.post("/mcp")
	e := h.rpcError(a, http.StatusServiceUnavailable)
	if a.Header.Get("Retry-After") != "1" || e.Data.Reason != "overloaded" || !strings.Contains(e.Message, "max_in_flight") {
		t.Errorf("Retry-After %q, %+v", a.Header.Get("Retry-After"), e)
	}
	// Streams that stand open do no work and are not counted.
	go send("GET")
	<-arrived
	go send("POST", "Mcp-Method: subscriptions/listen")
	<-arrived
	if got := h.limitsHit(); got != "in_flight" {
		t.Errorf("counted %q", got)
	}
	close(release)
	for range 4 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a request within the limit: HTTP %d", code)
		}
	}
	if a := h.post("/mcp"); a.StatusCode != http.StatusOK {
		t.Errorf("after all that: HTTP %d", a.StatusCode)
	}
	if n := h.door.inFlight.Load(); n != 0 {
		t.Errorf("%d in flight at the end", n)
	}
}
