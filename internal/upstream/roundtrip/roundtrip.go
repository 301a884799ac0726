// Package roundtrip carries HTTP requests to servers: plain ones on the goroutine of their caller, the others the way of
// the standard library.
package roundtrip

import (
	"net"
	"net/http"
	"time"
)

// New gives a transport that is tuned for many calls at a time to one server. There is no limit on the wait for headers,
// since a call that is answered as JSON has none until it ends, and no compression: events must not wait in a compressor.
func New() *Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &Transport{direct: newDirectTransport(dialer.DialContext), std: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 256,
		MaxIdleConns:        1024,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		WriteBufferSize:     16 << 10,
		ReadBufferSize:      32 << 10,
	}}
}

// Transport sends each request the cheapest way that it can go. It is safe for concurrent use.
type Transport struct {
	direct *directTransport
	std    *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" {
		if via, err := http.ProxyFromEnvironment(req); err == nil && via == nil {
			return t.direct.RoundTrip(req)
		}
	}
	return t.std.RoundTrip(req)
}

// CloseIdleConnections closes all that is idle.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.std.CloseIdleConnections()
}
