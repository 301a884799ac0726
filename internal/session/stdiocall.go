package session

import (
	"context"
	"errors"
	"slices"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// stdioCall is one request under way. It is also where what belongs to the request goes before its answer.
type stdioCall struct {
	c      *stdio
	caller *proxy.Caller
	f      *wire.Frame
	ctx    context.Context
	cancel context.CancelCauseFunc
	key    string
	noted  *running
}

// spawn runs something on a goroutine that the end of the conversation waits for; false where it is too late.
func (c *stdio) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.runs.Go(f)
	return true
}

// note keeps the cancel of a request under its id.
func (c *stdio) note(key string, cancel context.CancelCauseFunc) *running {
	r := &running{cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inflight[key] = append(c.inflight[key], r)
	return r
}

func (c *stdio) forget(key string, r *running) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(c.inflight[key], func(o *running) bool { return o == r })
	if len(rest) == 0 {
		delete(c.inflight, key)
		return
	}
	c.inflight[key] = rest
}

// cancelled ends the request with that id; where several have it nobody can tell which is meant, and none is touched.
func (c *stdio) cancelled(key string) {
	c.mu.Lock()
	var only *running
	if all := c.inflight[key]; len(all) == 1 {
		only = all[0]
	}
	c.mu.Unlock()
	if only != nil {
		only.cancel(proxy.CauseClient)
	}
}

// enter makes a request one that runs, so that it can be cancelled from now on, or gives the refusal. Requests over the
// bound are refused and not kept waiting: the reader must go on, since it also brings the cancels and answers that those
// under way may need to end.
func (c *stdio) enter(caller *proxy.Caller, f *wire.Frame) (*stdioCall, proxy.Answer) {
	id := f.ID.Of(f.Raw)
	c.mu.Lock()
	full := c.count >= c.m.opt.Limits.MaxInFlight
	if !full {
		c.count++
	}
	c.mu.Unlock()
	if full {
		c.m.count.Limit(count.LimitInFlight)
		return nil, proxy.Failure(id, wire.CodeInternal, "too many requests are under way (limits.max_in_flight)",
			[]byte(`{"upstream":"_proxy","reason":"`+string(proxy.Overloaded)+`"}`))
	}
	if !c.m.begin() {
		c.release()
		return nil, proxy.Failure(id, wire.CodeInternal, "the proxy is stopping", nil)
	}
	call := &stdioCall{c: c, caller: caller, f: f, key: wire.IDKey(id)}
	call.ctx, call.cancel = context.WithCancelCause(c.ctx)
	call.noted = c.note(call.key, call.cancel)
	return call, proxy.Answer{}
}

func (c *stdio) release() {
	c.mu.Lock()
	c.count--
	c.mu.Unlock()
}

// leave is the end of a request.
func (s *stdioCall) leave() {
	s.c.forget(s.key, s.noted)
	s.cancel(nil)
	s.c.release()
	s.c.m.calls.Done()
}

// run runs a request on a goroutine of its own; false where it is refused.
func (c *stdio) run(caller *proxy.Caller, f *wire.Frame) bool {
	call, refusal := c.enter(caller, f)
	if call == nil {
		c.answer(&refusal)
		return false
	}
	ok := c.spawn(func() {
		if a := call.handle(); !a.Ended {
			c.answer(&a)
			a.Release()
		}
		wire.PutFrame(f)
	})
	if !ok {
		call.leave()
	}
	return ok
}

// handle gets the answer. Its id is free again for the client when it returns, which is before the client can know.
func (s *stdioCall) handle() proxy.Answer {
	defer s.leave()
	a := s.c.m.proxy.Handle(s.ctx, s.cancel, s.request())
	// A list that was waited for is cut short by a cancel, and then not what was asked for.
	if unwanted(context.Cause(s.ctx)) {
		a.Release()
		return proxy.Answer{Ended: true}
	}
	return a
}

// request is the request for the proxy room. A legacy client has a conversation, a modern one has none.
func (s *stdioCall) request() *proxy.Request {
	if s.caller.Era == wire.Legacy {
		return s.c.state.request(s.c.m.proxy, s.caller, s.c.heard.news, s.f, s)
	}
	return &proxy.Request{Caller: s.caller, Frame: s.f, Sink: s}
}

// unwanted says whether a request that ended for this cause is answered to nobody.
func unwanted(err error) bool {
	var cause proxy.Cause
	return errors.As(err, &cause) && (cause == proxy.CauseClient || cause == proxy.CauseSessionEnd || cause == proxy.CauseClientGone)
}

// Notify implements proxy.Sink.
func (s *stdioCall) Notify(frame []byte) { s.c.write(frame) }

// Ask implements proxy.Sink.
func (s *stdioCall) Ask(ctx context.Context, method string, params []byte) (*wire.Frame, error) {
	if s.caller.Era != wire.Legacy {
		return nil, proxy.ErrCannotAsk
	}
	return s.c.questions.ask(ctx, method, params, s.c.m.limits, func(frame []byte) bool { return s.c.write(frame) })
}
