package proxy

import (
	"context"
	"errors"
	"sync"

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
	cancel context.CancelCauseFunc
	open   map[string]context.CancelCauseFunc // by the upstream's id
	wg     sync.WaitGroup
}

// errExchangeOver means that the call has ended before its question was answered.
var errExchangeOver = errors.New("the call that asked has ended")

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
		a.ctx, a.cancel = context.WithCancelCause(parent)
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
		cancel(errExchangeOver)
		a.wg.Wait()
	}
}

// asked handles a request of the upstream.
func (c *call) asked(f *wire.Frame) {
	switch modern := c.req.Caller.Era == wire.Modern; {
	case !c.canAnswer(f), modern && c.unlink == nil:
		c.refuseAsk(f) // nobody can be asked, or not in the course of this request
	case !modern:
		c.askNow(f)
	case !c.pose(f):
		c.refuseAsk(f)
	}
}

// askNow asks a legacy client, beside what else comes for the call.
func (c *call) askNow(f *wire.Frame) {
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
}

func (c *call) refuseAsk(f *wire.Frame) {
	c.p.metrics.serverRequest(c.up, f.Method, Denied)
	c.lease.Refuse(c.x, f)
}

// canAnswer says whether the client has declared that it can answer this question, and may be asked.
func (c *call) canAnswer(f *wire.Frame) bool { return c.questioner().can(f.Method, f.Raw, f.Body) }

// relayAsk brings a question to a legacy client and its answer to the upstream.
func (c *call) relayAsk(ctx context.Context, f *wire.Frame) {
	answer, err := c.questioner().relay(ctx, f)
	switch {
	case errors.Is(err, errWithdrawn):
	case errors.Is(err, errExchangeOver) && c.lease.Aside(c.x, f):
	default:
		c.lease.Reply(c.x, answer)
	}
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
