package session

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// fault is why a modern request is refused before anybody looks at what it is about.
type fault struct {
	code int
	text string
	data []byte
}

// modern serves a request of the stateless era: all that is to be known of it is in it.
func (p *poster) modern(f *wire.Frame, header string) {
	if f.Kind == wire.KindNotification {
		// The revision leaves open what a POST of a notification must carry; there is none that we need.
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	id := f.ID.Of(f.Raw)
	if f.Kind != wire.KindRequest {
		invalidRequest(p.w, http.StatusBadRequest, id, "this revision has no requests of the server that could be answered")
		return
	}
	if e := p.check(f, header); e != nil {
		refuse(p.w, http.StatusBadRequest, proxy.Failure(id, e.code, e.text, e.data))
		return
	}
	caller := modernCaller(f, header, p.view, p.principal)
	caller.Headers = p.r.Header
	if p.principal != "" {
		caller.Unit = "principal/" + p.principal
	}
	if f.Method == "subscriptions/listen" {
		p.listen(f, caller)
		return
	}
	p.modernRequest(caller, f)
}

// modernCaller is who makes a modern request: all that is known of it stands in the request.
func modernCaller(f *wire.Frame, version, view, principal string) *proxy.Caller {
	c := &proxy.Caller{Era: wire.Modern, Version: version, View: view, Principal: principal}
	c.Caps = proxy.ParseCaps(f.Meta.Get(f.Raw, wire.MetaClientCapabilities).Of(f.Raw))
	c.LogLevel, _ = wire.DecodeString(f.Meta.Get(f.Raw, wire.MetaLogLevel).Of(f.Raw))
	return c
}

// check verifies what every modern request must carry, and that the headers say what the body says
// (2026-07-28, streamable HTTP, "Standard Headers").
func (p *poster) check(f *wire.Frame, header string) *fault {
	v, e := metaVersion(f)
	switch {
	case e != nil:
		return e
	case len(p.r.Header[headerVersion]) > 1:
		return mismatch("the header MCP-Protocol-Version is there more than once")
	case header == "":
		return mismatch("the header MCP-Protocol-Version is missing")
	case header != v:
		return mismatch(fmt.Sprintf("the header MCP-Protocol-Version says %q and params._meta says %q", header, v))
	}
	if e := checkMeta(f, v); e != nil {
		return e
	}
	return p.checkMirrors(f)
}

// metaVersion is the revision that a modern request says it is of.
func metaVersion(f *wire.Frame) (string, *fault) {
	version := f.Meta.Get(f.Raw, wire.MetaProtocolVersion)
	if !version.Ok() {
		return "", missingMeta(wire.MetaProtocolVersion)
	}
	v, ok := wire.DecodeString(version.Of(f.Raw))
	if !ok {
		return "", &fault{code: wire.CodeInvalidParams, text: "params._meta: " + wire.MetaProtocolVersion + " must be a string"}
	}
	return v, nil
}

// checkMeta verifies what a modern request of that revision must carry in params._meta, whatever brings it.
func checkMeta(f *wire.Frame, version string) *fault {
	if !wire.IsModern(version) {
		return unsupported(version)
	}
	caps := f.Meta.Get(f.Raw, wire.MetaClientCapabilities).Of(f.Raw)
	switch {
	case len(caps) == 0:
		return missingMeta(wire.MetaClientCapabilities)
	case caps[0] != '{':
		return &fault{code: wire.CodeInvalidParams, text: "params._meta: " + wire.MetaClientCapabilities + " must be an object"}
	}
	return nil
}

// checkMirrors verifies the headers that repeat the method and the name.
func (p *poster) checkMirrors(f *wire.Frame) *fault {
	h := p.r.Header
	if len(h[headerMethod]) != 1 {
		return mismatch("the header Mcp-Method must be there, and once; it must repeat the method")
	}
	if got := strings.TrimSpace(h.Get(headerMethod)); got != f.Method {
		return mismatch(fmt.Sprintf("the header Mcp-Method says %q and the body %q", got, f.Method))
	}
	member := wire.NamedBy(f.Method)
	if member == "" {
		return nil
	}
	want, ok := wire.DecodeString(f.Body.Get(f.Raw, member).Of(f.Raw))
	if !ok {
		return nil // the method itself tells what it misses
	}
	values := h[headerName]
	if len(values) != 1 {
		return mismatch("the header Mcp-Name must be there, and once; it must repeat params." + member)
	}
	got, ok := wire.DecodeHeader(strings.TrimSpace(values[0]))
	if !ok || got != want {
		return mismatch(fmt.Sprintf("the header Mcp-Name says %q and params.%s %q", got, member, want))
	}
	return nil
}

func mismatch(text string) *fault { return &fault{code: wire.CodeHeaderMismatch, text: text} }

func missingMeta(key string) *fault {
	return &fault{code: wire.CodeInvalidParams, text: "params._meta lacks " + key + ", which every request of this revision must carry"}
}

func unsupported(v string) *fault {
	data := []byte(`{"supported":[`)
	for i, s := range wire.Revisions() {
		if i > 0 {
			data = append(data, ',')
		}
		data = wire.AppendString(data, s)
	}
	data = append(wire.AppendString(append(data, `],"requested":`...), v), '}')
	return &fault{code: wire.CodeUnsupportedRevision, text: "this server does not speak the revision " + v, data: data}
}

// modernRequest runs a request. A closed connection is its cancel.
func (p *poster) modernRequest(caller *proxy.Caller, f *wire.Frame) {
	id := f.ID.Of(f.Raw)
	if !p.m.begin() {
		p.drainRefused(id)
		return
	}
	defer p.m.calls.Done()
	ctx, cancel := context.WithCancelCause(p.m.base)
	defer cancel(nil)
	x := p.m.newExchange(p.w, p.accept)
	stop := context.AfterFunc(p.r.Context(), func() { cancel(proxy.CauseClient) })
	defer stop()
	a := p.m.proxy.Handle(ctx, cancel, &proxy.Request{Caller: caller, Frame: f, Sink: x, Param: p.param})
	if a.Ended {
		x.silent()
		return
	}
	x.finish(&a, modernStatus(a.Code))
	a.Release()
}

// param gives a header that repeats an argument.
func (p *poster) param(name string) (string, bool) {
	values := p.r.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return "", false
	}
	v := strings.TrimSpace(values[0])
	for i := range len(v) {
		if v[i] != '\t' && (v[i] < ' ' || v[i] > '~') {
			return v, false
		}
	}
	return wire.DecodeHeader(v)
}

// modernStatus is the HTTP status of an answer.
func modernStatus(code int) int {
	switch code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeHeaderMismatch, wire.CodeMissingCapability, wire.CodeUnsupportedRevision:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
