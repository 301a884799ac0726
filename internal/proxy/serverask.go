package proxy

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// What an upstream asks while it works on a call: a person's input, a model's answer, the client's roots. It is brought
// to the very client whose call caused it, or refused at once.

// The methods that upstreams may ask.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
)

var errAskTimeout = errors.New("nobody answered within elicitation.timeout")

// maxAsks bounds the questions of one call that are open at a time.
const maxAsks = 16

// asks are the questions of one exchange that a legacy client has been asked.
type asks struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
	open   map[string]context.CancelCauseFunc // by the upstream's id
	wg     sync.WaitGroup
}

// errWithdrawn means that the upstream has taken its question back.
var errWithdrawn = errors.New("the server has taken its question back")

// begin runs f for the question of that id, with a context that ends with the exchange; false where too many are open, or
// one with that id.
func (a *asks) begin(parent context.Context, id string, f func(ctx context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= maxAsks || a.open[id] != nil {
		return false
	}
	if a.cancel == nil {
		a.ctx, a.cancel = context.WithCancel(parent)
		a.open = map[string]context.CancelCauseFunc{}
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	a.open[id] = cancel
	a.wg.Go(func() {
		defer func() {
			cancel(nil)
			a.mu.Lock()
			delete(a.open, id)
			a.mu.Unlock()
		}()
		f(ctx)
	})
	return true
}

// withdraw takes one question back; false where it is not open.
func (a *asks) withdraw(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	cancel := a.open[id]
	if cancel != nil {
		cancel(errWithdrawn)
	}
	return cancel != nil
}

// end takes all questions back and waits for them.
func (a *asks) end() {
	a.mu.Lock()
	cancel := a.cancel
	a.cancel = nil
	a.mu.Unlock()
	if cancel != nil {
		cancel()
		a.wg.Wait()
	}
}

// asked handles a request of the upstream. ok says that the call is parked and its request answered meanwhile.
func (c *call) asked(f *wire.Frame) (_ Answer, ok bool) {
	modern := c.req.Caller.Era == wire.Modern
	if !c.canAnswer(f) || modern && c.unlink == nil {
		c.refuseAsk(f) // nobody can be asked, or not in the course of this request
		return Answer{}, false
	}
	if modern {
		return c.park(f)
	}
	c.repeated = true // what a person has been asked for is not asked again
	c.clock.hold()
	begun := c.asks.begin(c.ctx, wire.IDKey(f.ID.Of(f.Raw)), func(ctx context.Context) {
		defer c.clock.free()
		c.relayAsk(ctx, f)
	})
	if !begun {
		c.clock.free()
		c.refuseAsk(f)
	}
	return Answer{}, false
}

func (c *call) refuseAsk(f *wire.Frame) {
	c.p.metrics.serverRequest(c.up, f.Method, Denied)
	c.lease.Refuse(c.x, f)
}

// canAnswer says whether the client has declared that it can answer this question, and may be asked.
func (c *call) canAnswer(f *wire.Frame) bool {
	return c.canAnswerTo(f.Method, f.Raw, f.Body)
}

func (c *call) canAnswerTo(method string, raw []byte, params wire.Object) bool {
	caps := c.req.Caller.Caps
	switch method {
	case methodElicit:
		if c.item.Upstream.Config().Elicitation.Mode == config.ElicitationDecline {
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

// relayAsk brings a question to a legacy client and its answer to the upstream.
func (c *call) relayAsk(ctx context.Context, f *wire.Frame) {
	answer, err := c.askClient(ctx, f.Method, f.Raw, f.Params, f.Body)
	var member string
	outcome := OK
	switch {
	case errors.Is(err, errWithdrawn):
		c.p.metrics.serverRequest(c.up, f.Method, Cancelled)
		return
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
	c.p.metrics.serverRequest(c.up, f.Method, outcome)
	out := append([]byte(`{"jsonrpc":"2.0","id":`), f.ID.Of(f.Raw)...)
	c.lease.Reply(c.x, append(append(append(out, ','), member...), '}'))
}

func askOutcome(err error) Outcome {
	switch {
	case errors.Is(err, errAskTimeout):
		return Timeout
	case errors.Is(err, ErrCannotAsk):
		return Denied
	}
	return Cancelled
}

// unanswered is the answer to a question that nobody has answered: for an elicitation there are proper words.
func unanswered(method string, err error) string {
	if method == methodElicit {
		return `"result":{"action":"` + unansweredAction(err) + `"}`
	}
	return `"error":{"code":-32603,"message":"the client did not answer"}`
}

// unansweredAction is the word for why an elicitation has no answer: a client that cannot be asked declines, a person who
// did not choose has dismissed it (2025-11-25, client/elicitation, "Response Actions").
func unansweredAction(err error) string {
	if errors.Is(err, ErrCannotAsk) {
		return "decline"
	}
	return "cancel"
}

// askClient asks a legacy client, within the time that a person has.
func (c *call) askClient(ctx context.Context, method string, raw []byte, params wire.Span, body wire.Object) (*wire.Frame, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.item.Upstream.Config().Elicitation.Timeout, errAskTimeout)
	defer cancel()
	return c.req.Sink.Ask(ctx, method, c.downParams(method, raw, params, body))
}

// downParams are the parameters of a question as the client gets them: the name of who asks stands before the message
// where the client cannot tell it, and what its revision does not know is left out.
func (c *call) downParams(method string, raw []byte, params wire.Span, body wire.Object) []byte {
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
	if text, ok := c.label(obj.Get(own, "message").Of(own)); ok {
		p.Replace(obj.Get(own, "message"), text)
	}
	caller := c.req.Caller
	if caller.Era == wire.Legacy && caller.Version < wire.Rev20251125 {
		p.Remove(&obj, "mode")
	}
	if caller.Era == wire.Legacy && c.peer.Era == wire.Modern && string(obj.Get(own, "mode").Of(own)) == `"url"` && !obj.Has(own, "elicitationId") {
		p.Insert(&obj, "elicitationId", wire.AppendString(nil, "elicit-"+c.p.requestPrefix+"-"+strconv.FormatUint(c.p.requests.Add(1), 36)))
	}
	if caller.Era == wire.Modern {
		p.Remove(&obj, "elicitationId")
	}
	return p.Append(nil)
}

// label puts the name of the asking upstream before a message, on endpoints of several upstreams.
func (c *call) label(message []byte) ([]byte, bool) {
	if !c.item.Upstream.Config().Elicitation.Label || c.p.single(c.req.Caller.View) != nil {
		return nil, false
	}
	text, ok := wire.DecodeString(message)
	if !ok {
		return nil, false
	}
	c.p.count.Repair(c.up, count.RepairLabel)
	return wire.AppendString(nil, "["+c.up+"] "+text), true
}
