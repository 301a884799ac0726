package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// testResume cuts the stream of a call to each server in the middle. The client comes back and gets the answers.
func testResume(t *testing.T, s stage) {
	for _, c := range talkers {
		errands := resumeErrands(c.name, c.protocol)
		if len(errands) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			line := newCutter(t, s)
			through := s
			through.url = line.url
			through.talk(t, c.talk, c.protocol, planOf(c.name, "", errands))
			if cuts, resumed := int(line.cuts.Load()), int(line.resumed.Load()); cuts != len(errands) || resumed < cuts {
				t.Errorf("streams were cut %d times and resumed %d times, want %d and at least as many", cuts, resumed, len(errands))
			}
		})
	}
}

// gates hold calls back until somebody lets them through, for servers in whatever process.
type gates struct {
	url string

	mu   sync.Mutex
	open map[string]chan struct{} // closed for the calls that may go on
}

func newGates(t *testing.T) *gates {
	t.Helper()
	g := &gates{open: make(map[string]chan struct{})}
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-g.gate(strings.TrimPrefix(r.URL.Path, "/")):
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	g.url = web.URL
	return g
}

func (g *gates) gate(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[name] == nil {
		g.open[name] = make(chan struct{})
	}
	return g.open[name]
}

// let lets a call through, once and for all.
func (g *gates) let(name string) {
	gate := g.gate(name)
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// cutter is the way to the proxy, on which the streams of slow calls are cut after their first progress.
type cutter struct {
	url     string
	gates   *gates
	cuts    atomic.Int32
	resumed atomic.Int32
}

// slowCall is the name of the call, in a request whose stream is cut.
type slowCall struct{}

func newCutter(t *testing.T, s stage) *cutter {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{gates: s.gates}
	to := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ModifyResponse: func(resp *http.Response) error {
			if name, ok := resp.Request.Context().Value(slowCall{}).(string); ok {
				resp.Body = &cutBody{ReadCloser: resp.Body, cut: func() {
					c.cuts.Add(1)
					c.gates.let(name)
				}}
			}
			return nil
		},
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if r.Header.Get("Last-Event-Id") != "" {
			c.resumed.Add(1)
		}
		if name, ok := slow(body); ok {
			r = r.WithContext(context.WithValue(r.Context(), slowCall{}, name))
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	c.url = web.URL + target.Path
	return c
}

// slow says whether a message is a call whose stream is to be cut, and what its gate is called. The one of
// server-everything goes on without.
func slow(body []byte) (name string, ok bool) {
	var m struct {
		Params struct {
			Name      string   `json:"name"`
			Arguments callName `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil {
		return "", false
	}
	_, tool, _ := strings.Cut(m.Params.Name, "__")
	switch tool {
	case "slow":
		return m.Params.Arguments.Call, true
	case "trigger-long-running-operation":
		return "", true
	}
	return "", false
}

var errCut = errors.New("the line is cut")

// cutBody is a stream that ends with an error after the event of the first progress.
type cutBody struct {
	io.ReadCloser
	cut  func()
	seen []byte
	over bool
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.over {
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p)
	before := len(b.seen)
	b.seen = append(b.seen, p[:n]...)
	at := bytes.Index(b.seen, []byte("notifications/progress"))
	if at < 0 {
		return n, err
	}
	end := bytes.Index(b.seen[at:], []byte("\n\n"))
	if end < 0 {
		return n, err
	}
	b.over = true
	b.cut()
	return min(n, at+end+2-before), nil
}
