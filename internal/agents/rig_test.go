package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// double is an HTTP server that plays an agent. It keeps what it was asked.
type double struct {
	*httptest.Server
	mu    sync.Mutex
	asked []request
	over  chan string // hears of each request whose client has gone
}

type request struct {
	Header http.Header
	Body   map[string]any
	Path   string
}

// play answers one request. It may write as it likes.
type play func(w http.ResponseWriter, r *http.Request, n int, body map[string]any)

func newDouble(t *testing.T, p play) *double {
	t.Helper()
	d := &double{over: make(chan string, 100)}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var body map[string]any
		_ = json.Unmarshal(b, &body)
		d.mu.Lock()
		d.asked = append(d.asked, request{r.Header.Clone(), body, r.URL.Path})
		n := len(d.asked)
		d.mu.Unlock()
		p(w, r, n, body)
		if r.Context().Err() != nil {
			method, _ := body["method"].(string)
			d.over <- method
		}
	}))
	t.Cleanup(d.Close)
	return d
}

func (d *double) requests() []request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]request(nil), d.asked...)
}

// last is the newest request.
func (d *double) last() request {
	all := d.requests()
	return all[len(all)-1]
}

// wantClosed waits until the client of a request has gone.
func (d *double) wantClosed(t *testing.T) {
	t.Helper()
	select {
	case <-d.over:
	case <-time.After(patience):
		t.Fatal("the request was not closed")
	}
}

// events writes an event stream.
func events(w http.ResponseWriter, datas ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, data := range datas {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		w.(http.Flusher).Flush()
	}
}

func answerJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

// entry reads one agent from a configuration.
func entry(t *testing.T, text string) *config.Server {
	t.Helper()
	l := config.Load(config.Options{WorkDir: t.TempDir(), Text: []byte(`{"agents": {"helper": ` + text + `}}`), Source: "test",
		Getenv: func(string) (string, bool) { return "", false }})
	if errs := l.Errors(); len(errs) > 0 {
		t.Fatal(errs)
	}
	return l.Config.Servers[0]
}

// ask runs an agent once, and gives what it said on the way.
func ask(ctx context.Context, t *testing.T, cfg *config.Server, input string) (text, said string, err error) {
	t.Helper()
	client := NewClient()
	defer client.CloseIdleConnections()
	var b strings.Builder
	text, err = newRunner(cfg, Options{Client: client}).run(ctx, input, func(part string) { b.WriteString(part) })
	return text, b.String(), err
}

// wantError fails where an error does not say all of these.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; it must say %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("the error %q does not say %q", err, p)
		}
	}
}
