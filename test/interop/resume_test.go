package interop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
)

// testResume cuts the stream of a call in the middle. The client comes back and gets the answer.
func testResume(t *testing.T, s stage) {
	clients := []struct {
		name string
		talk talker
	}{
		{"go-sdk legacy", goTalker(legacyRevision)},
		{"typescript v1", nodeTalker("talk1.mjs")},
		{"typescript v2 legacy", nodeTalker("talk2.mjs", "legacy")},
	}
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), visitTimeout)
			defer cancel()
			line := newCutter(t, s)
			through := s
			through.url = line.url
			slow := &call{"askeroldweb__slow", map[string]any{}}
			got := c.talk(ctx, t, through, []errand{{Server: "askeroldweb", Elicit: slow}})
			if text := got["askeroldweb"].Elicit; text != "done" {
				t.Errorf("the tool answered %q, want done", text)
			}
			if cuts, resumed := line.cuts.Load(), line.resumed.Load(); cuts != 1 || resumed == 0 {
				t.Errorf("the stream was cut %d times and resumed %d times, want once and at least once", cuts, resumed)
			}
		})
	}
}

// cutter is the way to the proxy, on which the stream of a slow call is cut after its first progress.
type cutter struct {
	url     string
	cut     chan<- struct{} // told of each cut
	cuts    atomic.Int32
	resumed atomic.Int32
}

// slowCall marks the request whose stream is cut.
type slowCall struct{}

func newCutter(t *testing.T, s stage) *cutter {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{cut: s.cut}
	to := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host },
		ModifyResponse: func(resp *http.Response) error {
			if resp.Request.Context().Value(slowCall{}) != nil {
				resp.Body = &cutBody{ReadCloser: resp.Body, c: c}
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
		if bytes.Contains(body, []byte(`__slow"`)) {
			r = r.WithContext(context.WithValue(r.Context(), slowCall{}, true))
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	c.url = web.URL + target.Path
	return c
}

var errCut = errors.New("the line is cut")

// cutBody is a stream that ends with an error after the first progress in it.
type cutBody struct {
	io.ReadCloser
	c    *cutter
	seen []byte
}

func (b *cutBody) Read(p []byte) (int, error) {
	if bytes.Contains(b.seen, []byte("notifications/progress")) && bytes.HasSuffix(b.seen, []byte("\n\n")) {
		b.c.cuts.Add(1)
		b.c.cut <- struct{}{}
		return 0, errCut
	}
	n, err := b.ReadCloser.Read(p)
	b.seen = append(b.seen, p[:n]...)
	return n, err
}
