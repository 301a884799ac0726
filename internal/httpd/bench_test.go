package httpd

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// noMCP does nothing, so that only the steps before it are measured.
type noMCP struct{}

func (noMCP) Has(Endpoint) bool                                                  { return true }
func (noMCP) Serve(http.ResponseWriter, *http.Request, Endpoint, auth.Principal) {}

// nullWriter is a response nobody reads.
type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

func BenchmarkDoor(b *testing.B) {
	for name, c := range map[string]struct {
		auth    config.Auth
		headers map[string]string
	}{
		"open":   {},
		"tokens": {auth: config.Auth{Mode: config.AuthTokens, Tokens: []config.Token{{Name: "a", Token: "secret"}}}},
		"cors":   {headers: map[string]string{"Origin": "http://localhost:6274"}},
	} {
		b.Run(name, func(b *testing.B) {
			d, err := New(Options{
				Proxy:    config.Proxy{Limits: config.Limits{MaxBodyBytes: 4 << 20, MaxInFlight: 1000}},
				Registry: prometheus.NewRegistry(), Auth: auth.New(c.auth), MCP: noMCP{},
				Status: func() Status { return Status{} }, Listen: "127.0.0.1:8080",
			})
			if err != nil {
				b.Fatal(err)
			}
			r := httptest.NewRequest("POST", "/mcp", io.NopCloser(bytes.NewReader(nil)))
			r.Host, r.ContentLength = "127.0.0.1:8080", 100
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			credential := []string{"Bearer secret"}
			w, h := nullWriter{http.Header{}}, d.Main()
			b.ReportAllocs()
			for b.Loop() {
				r.Header["Authorization"] = credential
				h.ServeHTTP(w, r)
			}
		})
	}
}
