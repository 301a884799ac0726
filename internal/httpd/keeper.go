package httpd

import (
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
)

// keeper asks callers who they are, by one set of credentials.
type keeper struct {
	d    *Door
	auth *auth.Authenticator
}

// clients is the keeper of the main listener, and of what is done in a client's name.
func (d *Door) clients() keeper { return keeper{d, d.opt.Auth} }

// admins is the keeper of the admin listener: it has credentials of its own, or asks for those of clients.
func (d *Door) admins() keeper {
	if d.opt.AdminAuth == nil {
		return d.clients()
	}
	return keeper{d, d.opt.AdminAuth}
}

// authenticate finds out who is calling and takes the credential off the request, so that nobody can forward it.
func (k keeper) authenticate(next guarded) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := k.auth.Authenticate(r.Header)
		if err != nil {
			k.challenge(w, err)
			return
		}
		if k.auth.Required() {
			delete(r.Header, k.auth.Header())
		}
		next(w, r, who)
	}
}

// challenge answers 401. RFC 6750, section 3.1: an error code only where a credential was sent.
func (k keeper) challenge(w http.ResponseWriter, err error) {
	value, reason := `Bearer realm="mcp-proxy"`, refusedNoCredential
	if !errors.Is(err, auth.ErrMissing) {
		value += `, error="invalid_token"`
		reason = refusedCredential
	}
	w.Header().Add("Www-Authenticate", value)
	wants := "Authorization: Bearer <token>"
	if h := k.auth.Header(); h != "Authorization" {
		wants = h + ": <token>"
	}
	k.d.refuseAt(w, reason, refusal{status: http.StatusUnauthorized, code: codeInvalidRequest, reason: "denied",
		message: "Not authorized: " + err.Error() + ". Send a token of this proxy in the header " + wants + "."})
}

// operator guards the pages that tell about everything: callers who are bound to a profile may not see them.
func (k keeper) operator(next http.HandlerFunc) http.HandlerFunc {
	return k.authenticate(func(w http.ResponseWriter, r *http.Request, who auth.Principal) {
		if who.Profile != "" {
			k.d.refuseAt(w, refusedProfile, refusal{status: http.StatusForbidden, code: codeInvalidRequest, reason: "denied",
				message: "This token is bound to a profile and does not open this page."})
			return
		}
		next(w, r)
	})
}

// mayOperate tells whether operator would let this request pass.
func (k keeper) mayOperate(r *http.Request) bool {
	who, err := k.auth.Authenticate(r.Header)
	return err == nil && who.Profile == ""
}

// browsable lets operators look at a page with a browser, which cannot send a token by itself: it is asked for one in the
// way that every browser knows, as the password of any name. That is for pages that are only read. A browser sends what it
// was once given with every later request to us, also with those that other sites make it send.
func (k keeper) browsable(next http.HandlerFunc) http.HandlerFunc {
	guarded := k.operator(next)
	return func(w http.ResponseWriter, r *http.Request) {
		if !k.auth.Required() {
			guarded(w, r)
			return
		}
		if _, password, ok := r.BasicAuth(); ok && k.namesNobodyElse(r) {
			r = r.Clone(r.Context())
			r.Header.Del("Authorization")
			r.Header.Set(k.auth.Header(), "Bearer "+password)
		}
		if _, err := k.auth.Authenticate(r.Header); err != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
			w.Header().Add("Www-Authenticate", `Basic realm="mcp-proxy: any name, and a token as the password", charset="UTF-8"`)
		}
		guarded(w, r)
	}
}

// namesNobodyElse says whether a password is all that tells who calls: a peer on the way may add one of its own to a token,
// and of two credentials none counts.
func (k keeper) namesNobodyElse(r *http.Request) bool {
	h := k.auth.Header()
	n := len(r.Header.Values(h))
	return n == 0 || n == 1 && h == "Authorization"
}
