package httpd

import (
	"net"
	"net/http"
)

// mounted is the main handler for a server of somebody else: its Host rules go by the address that a connection came to.
// A page that was turned against this machine comes over loopback, like everybody there, and is known by its Host.
func (d *Door) mounted() (http.Handler, error) {
	loopback, err := d.mainAt("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	open, err := d.mainAt("0.0.0.0:0")
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && local.IP.IsLoopback() {
			loopback.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	}), nil
}
