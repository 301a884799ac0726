package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Every event must get through while the response goes on, by either way to flush.
func TestStreamsPassEveryStep(t *testing.T) {
	h := open(t, withTokens(""), bodyLimit(1000), proxyIs(func(p *config.Proxy) { p.Limits.MaxInFlight = 5 }))
	next := make(chan struct{})
	h.mcp.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		for i := range 4 {
			io.WriteString(w, "data: x\n")
			if i%2 == 0 {
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
			} else {
				w.(http.Flusher).Flush()
			}
			<-next
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), "POST", h.url+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice-secret")
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for range 4 {
		if line, err := in.ReadString('\n'); line != "data: x\n" {
			t.Fatalf("%q %v", line, err)
		}
		next <- struct{}{} // the handler waits for this: what we read cannot have come at the end
	}
	if resp.Header.Get("Content-Encoding") != "" {
		t.Error("the stream is compressed")
	}
}

// A deadline that one request set must not cut the next one on the same connection.
func TestWriteDeadlineEndsWithItsRequest(t *testing.T) {
	h := open(t)
	h.mcp.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "2")
		io.WriteString(w, "ok")
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.Flush(), rc.SetWriteDeadline(time.Now().Add(-time.Second))); err != nil {
			t.Error(err)
		}
	})
	c := h.raw()
	for i := range 3 {
		if a := c.ask("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"); a.body != "ok" {
			t.Errorf("request %d: HTTP %d %q", i, a.StatusCode, a.body)
		}
	}
}

func TestPanics(t *testing.T) {
	h := open(t)
	h.mcp.answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		panic("something odd")
	})
	if e := h.rpcError(h.post("/mcp"), http.StatusInternalServerError); e.Code != codeInternal || strings.Contains(e.Message, "odd") {
		t.Errorf("%+v", e)
	}
	record := h.log.FilterMessage("a handler panicked").All()
	if len(record) != 1 || record[0].ContextMap()["panic"] != "something odd" || !strings.Contains(record[0].ContextMap()["stack"].(string), "TestPanics") {
		t.Errorf("the log has %v", record)
	}
	h.mcp.answer(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"half":`)
		w.(http.Flusher).Flush()
		panic(errors.New("in the middle"))
	})
	resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), "POST", h.url+"/mcp", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("half an answer passes for a whole one: %q", body)
	}
	h.mcp.answer(nil)
	if a := h.post("/mcp"); a.StatusCode != http.StatusOK {
		t.Errorf("after the panics: HTTP %d", a.StatusCode)
	}
	if n := h.log.FilterMessage("request").Len(); n != 3 {
		t.Errorf("%d access records, want 3", n)
	}
}

// A handler that cuts the connection on purpose is no bug.
func TestAbortIsNoPanic(t *testing.T) {
	h := open(t)
	h.mcp.answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if resp, err := http.DefaultTransport.RoundTrip(httptest.NewRequestWithContext(t.Context(), "POST", h.url+"/mcp", nil)); err == nil {
		resp.Body.Close()
		t.Errorf("HTTP %d, want a broken connection", resp.StatusCode)
	}
	if h.log.FilterMessage("a handler panicked").Len() > 0 {
		t.Error("it is logged as a panic")
	}
}

func TestServerContextEndsRequests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	core, logs := observer.New(zapcore.WarnLevel)
	entered, left := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewServer(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		w.WriteHeader(http.StatusOK)
		w.WriteHeader(http.StatusOK) // net/http complains about this one
		close(left)
	}), zap.New(core))
	s.Start()
	defer s.Close()
	go func() {
		if resp, err := http.Get(s.URL); err == nil {
			resp.Body.Close()
		}
	}()
	<-entered
	cancel()
	<-left
	if n := logs.FilterLoggerName("http").Len(); n != 1 {
		t.Errorf("%d records of net/http, want 1", n)
	}
	if s.Config.ReadHeaderTimeout == 0 || s.Config.IdleTimeout == 0 || s.Config.WriteTimeout != 0 || s.Config.ReadTimeout != 0 {
		t.Errorf("the timeouts are %+v", s.Config)
	}
}
