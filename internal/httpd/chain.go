package httpd

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
)

// guarded is a handler whose caller is known.
type guarded func(w http.ResponseWriter, r *http.Request, who auth.Principal)

// mcp puts the steps of an MCP request together, in the order that routes.go tells.
func (d *Door) mcp(find finder) http.HandlerFunc {
	return d.crossOrigin(d.clients().authenticate(d.bound(d.limitBody(d.endpoint(find)))))
}

// enter is around everything else: it sees to it that no panic ends the process, and writes the access log.
func (d *Door) enter(l *listener, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := newRecorder(w)
		defer d.leave(rec, r)
		r = d.hurry(rec, r)
		if d.admit(l, rec, r) {
			next.ServeHTTP(rec, r)
		}
	})
}

// leave is deferred by enter and ends every request.
func (d *Door) leave(rec *recorder, r *http.Request) {
	v := recover()
	if v == nil {
		d.logAccess(rec, r)
		return
	}
	aborted := rec.status != 0
	if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		aborted = true // a handler's own way to cut the connection, nothing to report
	} else {
		d.metrics.panics.Inc()
		d.log.Error("a handler panicked", zap.String("panic", fmt.Sprint(v)), zap.Stack("stack"))
	}
	if !aborted {
		refuse(rec, refusal{status: http.StatusInternalServerError, code: codeInternal, reason: "rpc_error",
			message: "The proxy failed while it served this request; its log tells more."})
	}
	d.logAccess(rec, r)
	if aborted {
		// The response has begun. Ending it in good order would pass a cut-off answer for a whole one.
		panic(http.ErrAbortHandler)
	}
}

// admit checks Host and Origin, the two headers that give away a web page which reaches us through somebody's browser.
func (d *Door) admit(l *listener, rec *recorder, r *http.Request) bool {
	// Probes address us by whatever the platform gives them, and what they read is no secret.
	if !l.hostAllowed(r.Host) && !isProbe(r.URL.Path) {
		rec.why = "host " + strconv.Quote(r.Host) + " is not listed in proxy.allowed_hosts"
		d.refuseAt(rec, refusedHost, refusal{status: http.StatusForbidden, code: codeInvalidRequest, reason: "denied",
			message: "The Host " + strconv.Quote(r.Host) + " is not allowed. To allow it, list it in proxy.allowed_hosts."})
		return false
	}
	if origins := r.Header["Origin"]; len(origins) > 0 && !l.originAllowed(origins, r.Host) {
		rec.why = fmt.Sprintf("origin %q is not listed in proxy.allowed_origins", origins)
		d.refuseAt(rec, refusedOrigin, refusal{status: http.StatusForbidden, code: codeInvalidRequest, reason: "denied",
			message: "The Origin " + strconv.Quote(origins[0]) + " is not allowed. To allow it, list it in proxy.allowed_origins."})
		return false
	}
	return true
}

func isProbe(path string) bool {
	return path == "/healthz" || path == "/readyz" || path == "/healthz/" || path == "/readyz/"
}

// sameOriginOnly guards what changes something: a web page of another origin, allowed to speak MCP or not, must not.
func (d *Door) sameOriginOnly(l *listener, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if origins := r.Header["Origin"]; len(origins) > 0 && !l.sameOrigin(origins[0], r.Host) {
			d.refuseAt(w, refusedOrigin, refusal{status: http.StatusForbidden, code: codeInvalidRequest, reason: "denied",
				message: "Web pages of other origins may not do this."})
			return
		}
		next(w, r)
	}
}

// endpoint hands the request over to the protocol. Callers bound to a profile find it at /mcp too, and everything
// else looks to them as if it did not exist.
func (d *Door) endpoint(find finder) guarded {
	return func(w http.ResponseWriter, r *http.Request, who auth.Principal) {
		ep := find(r)
		if who.Profile != "" {
			own := Endpoint{Kind: KindProfile, Name: who.Profile}
			if ep.Kind != KindAggregate && ep != own {
				notFound(w, r)
				return
			}
			ep = own
		}
		if !d.opt.MCP.Has(ep) {
			notFound(w, r)
			return
		}
		d.opt.MCP.Serve(w, r, ep, who)
	}
}

// tool serves a call of one tool: one of everything, of the profile that the query names, or of the caller's own.
func (d *Door) tool(w http.ResponseWriter, r *http.Request, who auth.Principal) {
	ep, asked := Endpoint{Kind: KindAggregate}, r.URL.Query().Get("profile")
	if who.Profile != "" && (asked == "" || asked == who.Profile) {
		asked = who.Profile
	} else if who.Profile != "" {
		notFound(w, r)
		return
	}
	if asked != "" {
		ep = Endpoint{Kind: KindProfile, Name: asked}
	}
	if !d.opt.MCP.Has(ep) {
		notFound(w, r)
		return
	}
	d.opt.Tool(w, r, ep, who, pathName(r))
}
