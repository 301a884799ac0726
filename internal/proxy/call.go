package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// call is one request on its way. It is used by one goroutine, but for the timers that end its context.
type call struct {
	p      *Proxy
	req    *Request
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time
	id     string // for log and errors
	method string
	up     string
	item   *Item
	key    wire.Span // of the name or URI in the frame

	peer     *upstream.Peer
	upID     uint64
	token    wire.Span // the client's progress token
	idle     *time.Timer
	idleFor  time.Duration
	answered bool
}

// forward sends the request to the owner of the item and brings back what comes for it.
func (c *call) forward() (Answer, Outcome) {
	s := c.p.metrics.of(c.up, c.method)
	cfg := c.item.Upstream.Config()
	longest := time.AfterFunc(cfg.MaxCallTime, func() { c.cancel(CauseMaxTime) })
	defer longest.Stop()
	if err := c.checkHeaders(); err != nil {
		return Failure(c.rawID(), wire.CodeHeaderMismatch, err.Error(), nil), Invalid
	}
	lease, err := c.item.Upstream.Acquire(c.ctx, c.req.Caller.unit())
	queued := time.Since(c.began)
	s.queue.Observe(queued.Seconds())
	if err != nil {
		return c.fault(err)
	}
	defer lease.Release()
	c.peer, c.idleFor = lease.Peer(), cfg.CallTimeout
	c.idle = time.AfterFunc(c.idleFor, func() { c.cancel(CauseInactivity) })
	defer c.idle.Stop()
	defer func() { s.atUpstream.Observe((time.Since(c.began) - queued).Seconds()) }()
	out := c.outgoing()
	x, err := lease.Start(c.ctx, out)
	if err != nil {
		return c.fault(err)
	}
	a, o := c.follow(lease, x)
	if !c.answered && c.ctx.Err() != nil {
		lease.Cancel(c.upID, context.Cause(c.ctx).Error())
	}
	x.Close(!c.answered)
	return a, o
}

// checkHeaders compares the headers that repeat arguments, where the client's transport has headers.
func (c *call) checkHeaders() error {
	if c.req.Param == nil || c.req.Caller.Era != wire.Modern || len(c.item.offer.params) == 0 {
		return nil
	}
	f := c.req.Frame
	return checkHeaders(c.item.offer.params, f.Body.Get(f.Raw, "arguments").Of(f.Raw), c.req.Param)
}

// follow reads what comes for the call until its answer.
func (c *call) follow(lease *upstream.Lease, x upstream.Exchange) (Answer, Outcome) {
	for {
		f, err := x.Next(c.ctx)
		if err != nil {
			return c.fault(err)
		}
		switch f.Kind {
		case wire.KindNotification:
			c.notified(f)
		case wire.KindRequest:
			c.idle.Reset(c.idleFor)
			lease.Refuse(x, f)
		case wire.KindResponse:
			c.answered = true
			return c.result(f)
		case wire.KindError:
			c.answered = true
			if c.method == "completion/complete" && isMethodNotFound(f) {
				// Whoever offers something to complete need not know how.
				return Result(c.rawID(), c.p.eraResult([]byte(`{"completion":{"values":[],"total":0,"hasMore":false}}`), c.req.Caller.Era)), OK
			}
			return c.errorAnswer(f), RPCError
		}
	}
}

// notified passes on a notification that belongs to this call, if the client can take it.
func (c *call) notified(f *wire.Frame) {
	switch f.Method {
	case "notifications/progress":
		c.idle.Reset(c.idleFor)
		if !c.token.Ok() {
			return // the token was ours, so that progress holds the call open
		}
		var p wire.Patch
		p.Reset(f.Raw)
		p.Replace(f.Body.Get(f.Raw, "progressToken"), c.token.Of(c.req.Frame.Raw))
		c.req.Sink.Notify(p.Append(nil))
	case "notifications/message":
		c.idle.Reset(c.idleFor)
		if !passesLevel(f, c.req.Caller.LogLevel) {
			c.p.count.Drop(count.DropLog)
			return
		}
		c.req.Sink.Notify(f.Raw)
	case "notifications/cancelled":
		c.p.count.Drop(count.DropNotification)
	default:
		for k := range kinds {
			if kindInfo[k].changed == f.Method {
				c.p.catalog.Changed(c.item.Upstream)
				return
			}
		}
		if f.Method == "notifications/resources/updated" {
			c.p.catalog.Notification(c.item.Upstream, f)
			return
		}
		c.req.Sink.Notify(f.Raw)
	}
}

// fault answers for what went wrong on the way, and counts what was cancelled.
func (c *call) fault(err error) (Answer, Outcome) {
	var cause Cause
	if errors.As(err, &cause) {
		c.p.metrics.cancelled(c.up, cause)
		if o := cause.outcome(); o == Cancelled || o == ClientGone {
			return Answer{Ended: true}, o
		}
	}
	a, o := pathFault(c.rawID(), c.up, c.item.Wire, c.requestID(), err)
	if o == Uncertain && cause == "" {
		c.p.metrics.cancelled(c.up, CauseUpstreamLost)
		if c.method != "tools/call" {
			// What only reads has done nothing that could be in doubt.
			a, o = pathFault(c.rawID(), c.up, c.item.Wire, c.requestID(), &upstream.Error{Upstream: c.up, Reason: upstream.ReasonTransport, Err: err})
		}
	}
	return a, o
}
