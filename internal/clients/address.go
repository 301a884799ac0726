package clients

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// locate gives the HTTP address that is meant and what reaches it. "unix:/path" is a proxy at a unix socket, with
// "/mcp" for the endpoint unless another stands behind a second colon: "unix:/path:/profiles/readers/mcp". The transport
// is a clone of the default one.
func locate(address string) (string, *http.Transport) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return address, t
	}
	path, endpoint, ok := strings.Cut(path, ":")
	if !ok {
		endpoint = "/mcp"
	}
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return "http://localhost" + endpoint, t
}
