package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// A modern upstream cannot ask while it works: it answers that it needs input, and is called again with it. For a legacy
// client, which can be asked, this is done here.

const (
	maxRounds      = 10
	maxEmpty       = 3 // rounds in which nothing is asked: the server only wants to be called again
	emptyPause     = 100 * time.Millisecond
	typeInput      = `"input_required"`
	stateMember    = "requestState"
	requestsMember = "inputRequests"
	answersMember  = "inputResponses"
)

// drives says whether a result is one that has to be continued here.
func (c *call) drives(f *wire.Frame) bool {
	return c.req.Caller.Era == wire.Legacy && c.peer.Era == wire.Modern && string(f.Body.Get(f.Raw, "resultType").Of(f.Raw)) == typeInput
}

// clientRefused is a client's error answer to a question, for which the modern era has no place.
type clientRefused struct{ raw []byte }

func (e *clientRefused) Error() string { return "the client refused to answer: " + string(e.raw) }

var errTooManyRounds = fmt.Errorf("the server asks for input again and again; after %d rounds nobody is asked any more", maxRounds)

// gather asks the client for what a result demands, and gives what the next request carries.
func (c *call) gather(f *wire.Frame, round int) ([]member, error) {
	if round >= maxRounds {
		return nil, errTooManyRounds
	}
	var extra []member
	if state := f.Body.Get(f.Raw, stateMember); state.Ok() {
		extra = append(extra, member{stateMember, append([]byte(nil), state.Of(f.Raw)...)})
	}
	requests, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, requestsMember))
	if !ok || len(requests.Members) == 0 {
		if len(extra) == 0 || c.empty >= maxEmpty {
			return nil, errors.New("the server asks for input, and does not say which")
		}
		sleep(c.ctx, emptyPause<<c.empty)
		c.empty++
		c.clock.alive()
		return extra, c.ctx.Err()
	}
	if len(requests.Members) > maxAsks {
		return nil, fmt.Errorf("the server asks for %d things at once; %d is the most", len(requests.Members), maxAsks)
	}
	answers := []byte{'{'}
	for i, m := range requests.Members {
		answer, err := c.inputFor(f, m.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			answers = append(answers, ',')
		}
		answers = append(append(append(answers, m.Key.Of(f.Raw)...), ':'), answer...)
	}
	return append(extra, member{answersMember, append(answers, '}')}), nil
}

// inputFor asks the client one of the questions of a result.
func (c *call) inputFor(f *wire.Frame, at wire.Span) ([]byte, error) {
	q, _ := wire.ObjectAt(f.Raw, at)
	method, _ := wire.DecodeString(q.Get(f.Raw, "method").Of(f.Raw))
	params := q.Get(f.Raw, "params")
	body, _ := wire.ObjectAt(f.Raw, params)
	if !c.questioner().can(method, f.Raw, body) {
		c.p.metrics.serverRequest(c.up, method, Denied)
		if method == methodElicit {
			return []byte(`{"action":"decline"}`), nil
		}
		return nil, fmt.Errorf("the server asks for %s, which the client has not declared", method)
	}
	c.clock.hold()
	answer, err := c.questioner().ask(c.ctx, method, f.Raw, params, body)
	c.clock.free()
	switch {
	case err != nil:
		c.p.metrics.serverRequest(c.up, method, askOutcome(err))
		if method == methodElicit && c.ctx.Err() == nil {
			return []byte(`{"action":"` + unansweredAction(err) + `"}`), nil
		}
		return nil, err
	case answer.Kind == wire.KindError:
		c.p.metrics.serverRequest(c.up, method, RPCError)
		return nil, &clientRefused{answer.Error.Of(answer.Raw)}
	}
	result := answer.Result.Of(answer.Raw)
	if method == methodElicit && !acceptable(body.Get(f.Raw, "requestedSchema").Of(f.Raw), result) {
		c.p.metrics.serverRequest(c.up, method, Invalid)
		return []byte(`{"action":"decline"}`), nil
	}
	c.p.metrics.serverRequest(c.up, method, OK)
	return result, nil
}

// notGathered answers a call whose input could not be had.
func (c *call) notGathered(err error) (Answer, Outcome) {
	var refused *clientRefused
	switch {
	case c.ctx.Err() != nil:
		return c.fault(context.Cause(c.ctx))
	case errors.As(err, &refused):
		return Failure(c.rawID(), wire.CodeInternal, c.up+"::"+c.item.Wire+": "+err.Error(), nil), RPCError
	}
	return c.fault(err)
}

// labelInputs puts the name of the asking upstream before the messages of what a modern one asks a modern client. It is
// false where the configuration lets it ask nobody.
func (c *call) labelInputs(p *wire.Patch, f *wire.Frame) bool {
	requests, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, requestsMember))
	for _, m := range requests.Members {
		q, _ := wire.ObjectAt(f.Raw, m.Value)
		if string(q.Get(f.Raw, "method").Of(f.Raw)) != `"`+methodElicit+`"` {
			continue
		}
		if c.item.Upstream.Config().Elicitation.Mode == config.ElicitationDecline {
			return false
		}
		params, _ := wire.ObjectAt(f.Raw, q.Get(f.Raw, "params"))
		message := params.Get(f.Raw, "message")
		if text, ok := c.questioner().label(message.Of(f.Raw)); ok {
			p.Replace(message, text)
		}
	}
	return true
}
