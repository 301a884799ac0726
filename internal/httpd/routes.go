package httpd

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
)

// The order in which a request passes, once for all:
//
//	enter         panic recovery and access log around everything; the body must come in time
//	admit         Host, then Origin, on every path and method
//	crossOrigin   CORS headers; a preflight ends here, before anybody has to say who is calling
//	authenticate  who is calling; the credential's header ends here
//	drain         nothing new while shutting down
//	bound         requests in flight
//	limitBody     size of the body
//	endpoint      which endpoint, and may this caller use it

// mainRoutes are the paths of the listener for MCP clients.
func (d *Door) mainRoutes(l *listener) http.Handler {
	r := chi.NewRouter()
	r.NotFound(d.crossOrigin(notFound))
	both(r, "/mcp", d.mcp(aggregate))
	both(r, "/servers/{name}/mcp", d.mcp(named(KindServer)))
	both(r, "/profiles/{name}/mcp", d.mcp(named(KindProfile)))
	pages(r, "/healthz", healthz)
	pages(r, "/readyz", d.readyz(func(req *http.Request) bool {
		return !d.hasAdmin() && l.hostAllowed(req.Host) && d.clients().mayOperate(req)
	}))
	if !d.hasAdmin() {
		d.operatorRoutes(r, l, d.clients(), d.clients().browsable)
	}
	return r
}

// adminRoutes are the paths of the listener for operators. On loopback, unless there are credentials for it, the pages are
// open to everybody who can reach it; on any other address the callers are asked for a credential.
func (d *Door) adminRoutes(l *listener) http.Handler {
	k := d.admins()
	open := l.loopback && d.opt.AdminAuth == nil
	guard := k.browsable
	if open {
		guard = func(next http.HandlerFunc) http.HandlerFunc { return next }
	}
	r := chi.NewRouter()
	r.NotFound(notFound)
	pages(r, "/healthz", healthz)
	pages(r, "/readyz", d.readyz(func(req *http.Request) bool {
		return l.hostAllowed(req.Host) && (open || k.mayOperate(req))
	}))
	d.operatorRoutes(r, l, k, guard)
	return r
}

func (d *Door) operatorRoutes(r chi.Router, l *listener, k keeper, guard func(http.HandlerFunc) http.HandlerFunc) {
	pages(r, "/metrics", guard(d.metricsPage()))
	pages(r, "/api/v1/status", guard(d.statusJSON))
	pages(r, "/", guard(d.statusPage))
	if d.opt.Tool != nil {
		// A tool is called in a client's name, whatever the listener.
		call := d.sameOriginOnly(l, d.clients().authenticate(d.bound(d.limitBody(d.tool))))
		r.Post("/api/v1/tools/{name}/call", call)
		r.Post("/api/v1/tools/{name}/call/", call)
	}
	if d.opt.Reload != nil {
		// It changes something, so it asks for the credential on every listener.
		reload := d.sameOriginOnly(l, k.operator(d.reload))
		r.Post("/-/reload", reload)
		r.Post("/-/reload/", reload)
	}
}

// both serves a path with and without a slash at its end. Clients lose the body or the credential when they are
// redirected from one to the other.
func both(r chi.Router, path string, h http.Handler) {
	r.Handle(path, h)
	r.Handle(path+"/", h)
}

// pages serves a path that can only be read.
func pages(r chi.Router, path string, h http.HandlerFunc) {
	r.Get(path, h)
	r.Head(path, h)
	if path != "/" {
		r.Get(path+"/", h)
		r.Head(path+"/", h)
	}
}

// finder takes the endpoint out of a request that has been routed.
type finder func(*http.Request) Endpoint

func aggregate(*http.Request) Endpoint { return Endpoint{Kind: KindAggregate} }

func named(kind Kind) finder {
	return func(r *http.Request) Endpoint { return Endpoint{Kind: kind, Name: pathName(r)} }
}

// pathName gives the name in the path without percent-encoding. Routing goes by RawPath where there is one, and only
// then is the name still encoded; decoding it a second time would turn "a%2525b" into another name.
func pathName(r *http.Request) string {
	name := chi.URLParam(r, "name")
	if r.URL.RawPath == "" {
		return name
	}
	plain, err := url.PathUnescape(name)
	if err != nil {
		return "" // no upstream or profile has this name
	}
	return plain
}

func notFound(w http.ResponseWriter, r *http.Request) {
	refuse(w, refusal{
		status: http.StatusNotFound, code: codeInvalidRequest, reason: "invalid",
		message: "There is no such endpoint. MCP is served at /mcp, /servers/{id}/mcp and /profiles/{name}/mcp.",
	})
}
