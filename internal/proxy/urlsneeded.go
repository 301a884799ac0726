package proxy

import (
	"strconv"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// urlsNeeded turns a legacy upstream's error that says which pages must be visited first into what a modern client knows:
// input that is required. When it comes back, the call is simply made again. A client that cannot be sent to a page is
// told what it lacks.
func (c *call) urlsNeeded(f *wire.Frame) (Answer, Outcome, bool) {
	obj, _ := wire.ObjectAt(f.Raw, f.Error)
	if c.req.Caller.Era != wire.Modern || c.peer.Era != wire.Legacy || string(obj.Get(f.Raw, "code").Of(f.Raw)) != strconv.Itoa(wire.CodeURLElicitation) {
		return Answer{}, OK, false
	}
	if c.item.Upstream.Config().Elicitation.Mode == config.ElicitationDecline {
		return Answer{}, OK, false
	}
	if c.req.Caller.Caps&CapElicitURL == 0 {
		text, _ := wire.DecodeString(obj.Get(f.Raw, "message").Of(f.Raw))
		return Failure(c.rawID(), wire.CodeMissingCapability, text, []byte(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`)), RPCError, true
	}
	data, _ := wire.ObjectAt(f.Raw, obj.Get(f.Raw, "data"))
	requests := c.pageRequests(f, wire.Elements(f.Raw, data.Get(f.Raw, "elicitations")))
	if len(requests) == 0 {
		return Answer{}, OK, false
	}
	expires := time.Now().Add(c.item.Upstream.Config().Elicitation.Timeout)
	state := c.p.parked.seal(requestState{kind: stateAgain}, expires, c.binding())
	b := append(append([]byte(`{"resultType":"input_required","inputRequests":{`), requests...), `},"requestState":`...)
	return Result(c.rawID(), append(wire.AppendString(b, state), '}')), OK, true
}

// pageRequests are the members of inputRequests for these elicitations.
func (c *call) pageRequests(f *wire.Frame, elicitations []wire.Span) (b []byte) {
	for i, e := range elicitations {
		params, ok := wire.ObjectAt(f.Raw, e)
		if !ok {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, `"url`+strconv.Itoa(i+1)+`":{"method":"`+methodElicit+`","params":`...)
		b = append(append(b, c.questioner().params(methodElicit, f.Raw, e, params)...), '}')
	}
	return b
}

// declined says whether a client that comes back has not agreed to all that it was asked.
func declined(f *wire.Frame) bool {
	answers, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, answersMember))
	for _, m := range answers.Members {
		a, _ := wire.ObjectAt(f.Raw, m.Value)
		if string(a.Get(f.Raw, "action").Of(f.Raw)) != `"accept"` {
			return true
		}
	}
	return false
}
