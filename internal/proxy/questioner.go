package proxy

import (
	"context"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// questioner brings questions of one upstream to one client.
type questioner struct {
	p      *Proxy
	u      *upstream.Upstream
	era    wire.Era // of the upstream
	caller *Caller
	sink   Sink
}

// questioner is the one for what this call causes.
func (c *call) questioner() *questioner {
	return &questioner{p: c.p, u: c.item.Upstream, era: c.peer.Era, caller: c.req.Caller, sink: c.req.Sink}
}

// can says whether the client has declared that it can answer this question, and may be asked.
func (a *questioner) can(method string, raw []byte, params wire.Object) bool {
	caps := a.caller.Caps
	switch method {
	case methodElicit:
		if a.u.Config().Elicitation.Mode == config.ElicitationDecline {
			return false
		}
		if string(params.Get(raw, "mode").Of(raw)) == `"url"` {
			return caps&CapElicitURL != 0
		}
		return caps&CapElicitForm != 0
	case methodSample:
		return caps&CapSampling != 0 && (caps&CapSamplingTools != 0 || !params.Has(raw, "tools"))
	case methodRoots:
		return caps&CapRoots != 0
	}
	return false
}

// ask asks a legacy client, within the time that a person has.
func (a *questioner) ask(ctx context.Context, method string, raw []byte, params wire.Span, body wire.Object) (*wire.Frame, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.u.Config().Elicitation.Timeout, errAskTimeout)
	defer cancel()
	return a.sink.Ask(ctx, method, a.params(method, raw, params, body))
}

// relay brings a question to a legacy client and gives the answer for the upstream, and why there is none of the client.
func (a *questioner) relay(ctx context.Context, f *wire.Frame) (frame []byte, err error) {
	answer, err := a.ask(ctx, f.Method, f.Raw, f.Params, f.Body)
	var member string
	outcome := OK
	switch {
	case err != nil:
		outcome = askOutcome(err)
		member = unanswered(f.Method, err)
	case answer.Kind == wire.KindError:
		outcome = RPCError
		member = `"error":` + string(answer.Error.Of(answer.Raw))
	default:
		member = `"result":` + string(answer.Result.Of(answer.Raw))
		if !accepts(f, answer) {
			outcome, member = Invalid, `"result":{"action":"decline"}`
		}
	}
	a.p.metrics.serverRequest(a.u.ID, f.Method, outcome)
	out := append([]byte(`{"jsonrpc":"2.0","id":`), f.ID.Of(f.Raw)...)
	return append(append(append(out, ','), member...), '}'), err
}

// params are the parameters of a question as the client gets them: the name of who asks stands before the message where
// the client cannot tell it, and what its revision does not know is left out.
func (a *questioner) params(method string, raw []byte, params wire.Span, body wire.Object) []byte {
	if method != methodElicit || !params.Ok() {
		return params.Of(raw)
	}
	own := append([]byte(nil), params.Of(raw)...)
	obj, ok := wire.ObjectAt(own, wire.Span{End: len(own)})
	if !ok {
		return own
	}
	var p wire.Patch
	p.Reset(own)
	if text, ok := a.label(obj.Get(own, "message").Of(own)); ok {
		p.Replace(obj.Get(own, "message"), text)
	}
	if a.caller.Era == wire.Legacy && a.caller.Version < wire.Rev20251125 {
		p.Remove(&obj, "mode")
	}
	if a.caller.Era == wire.Legacy && a.era == wire.Modern && string(obj.Get(own, "mode").Of(own)) == `"url"` && !obj.Has(own, "elicitationId") {
		p.Insert(&obj, "elicitationId", wire.AppendString(nil, "elicit-"+a.p.requestPrefix+"-"+strconv.FormatUint(a.p.requests.Add(1), 36)))
	}
	switch {
	case a.caller.Era == wire.Modern:
		p.Remove(&obj, "elicitationId")
	case a.era == wire.Legacy:
		id, _ := wire.DecodeString(obj.Get(own, "elicitationId").Of(own))
		a.p.visits.note(a.caller.source(a.u), id, a.caller.Unit)
	}
	return p.Append(nil)
}

// label puts the name of the asking upstream before a message, on endpoints of several upstreams.
func (a *questioner) label(message []byte) ([]byte, bool) {
	if !a.u.Config().Elicitation.Label || a.p.single(a.caller.View) != nil {
		return nil, false
	}
	text, ok := wire.DecodeString(message)
	if !ok {
		return nil, false
	}
	a.p.count.Repair(a.u.ID, count.RepairLabel)
	return wire.AppendString(nil, "["+a.u.ID+"] "+text), true
}
