package httpd

import (
	"net/http"
	"strings"
)

// browsable lets operators look at a page with a browser, which cannot send a token by itself: it is asked for one in the
// way that every browser knows, as the password of any name. That is for pages that are only read. A browser sends what it
// was once given with every later request to us, also with those that other sites make it send.
func (d *Door) browsable(next http.HandlerFunc) http.HandlerFunc {
	guarded := d.operator(next)
	return func(w http.ResponseWriter, r *http.Request) {
		if !d.opt.Auth.Required() {
			guarded(w, r)
			return
		}
		if _, password, ok := r.BasicAuth(); ok && d.namesNobodyElse(r) {
			r = r.Clone(r.Context())
			r.Header.Del("Authorization")
			r.Header.Set(d.opt.Auth.Header(), "Bearer "+password)
		}
		if _, err := d.opt.Auth.Authenticate(r.Header); err != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
			w.Header().Add("Www-Authenticate", `Basic realm="mcp-proxy: any name, and a token as the password", charset="UTF-8"`)
		}
		guarded(w, r)
	}
}

// namesNobodyElse says whether a password is all that tells who calls: a peer on the way may add one of its own to a token,
// and of two credentials none counts.
func (d *Door) namesNobodyElse(r *http.Request) bool {
	h := d.opt.Auth.Header()
	n := len(r.Header.Values(h))
	return n == 0 || n == 1 && h == "Authorization"
}
