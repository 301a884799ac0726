package proxy

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// call is one request on its way. It is used by one goroutine at a time, but for the timers that end its context and the
// questions that the upstream asks meanwhile.
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

	tasks   tasking
	lease   *upstream.Lease
	peer    *upstream.Peer
	x       upstream.Exchange // with the upstream, under way
	upID    uint64            // of the request under way; zero where none is
	sentAs  uint64            // the id that the call was sent with last, which is its progress token too
	token   []byte            // the client's progress token, as it wrote it
	clock   clock
	longest *time.Timer
	asks    asks
	// questions are those for a modern client that it has not been brought yet, since asking; ahead is what is being read
	// beside them, nil while nothing is.
	questions []*wire.Frame
	asking    time.Time
	ahead     chan arrival
	// shortened says that the answer is the proxy's, in the place of one that was too long.
	shortened bool
	empty     int // rounds in which a modern upstream has asked for nothing
	// theirs has the state that an old upstream gave with a demand for more input; nil where the client brings none.
	theirs *requestState
	// unlink parts the life of the call from that of the request that it came with, which a parked call outlives.
	unlink func() bool
	parked bool
	// repeated says that the call has been made again after a lost connection; lost is the error that it is to be made
	// again for.
	repeated bool
	lost     error
	// publish makes a parked call one that can be taken up; it comes last, when nobody else looks at the call any more.
	publish func()
	input   string // of an agent
}

// forward sends the request to the owner of the item and brings back what comes for it.
func (c *call) forward() (Answer, Outcome) {
	if c.isAgent() {
		if why := c.takeInput(); why != "" {
			return Failure(c.rawID(), wire.CodeInvalidParams, c.item.Name+": "+why, nil), Invalid
		}
	}
	if err := c.checkHeaders(); err != nil {
		return Failure(c.rawID(), wire.CodeHeaderMismatch, err.Error(), nil), Invalid
	}
	s := c.p.metrics.of(c.up, c.method)
	cfg := c.item.Upstream.Config()
	cancel, began := c.cancel, c.began
	c.longest = time.AfterFunc(cfg.MaxCallTime, func() { cancel(CauseMaxTime) })
	defer func() {
		if !c.parked {
			c.release()
		}
	}()
	var err error
	c.lease, err = c.acquire()
	if errors.Is(err, upstream.ErrPlaceGone) {
		return c.unknownTask(), Invalid
	}
	queued := time.Since(began)
	s.queue.Observe(queued.Seconds())
	if err != nil {
		return c.fault(err)
	}
	c.peer = c.lease.Peer()
	if own, ok := c.req.Caller.ownOf(c.item.Upstream); ok && own.session {
		c.p.overlays.began(own) // by now the session has a connection of its own
	}
	c.mayPark()
	if c.req.Caller.Era == wire.Modern && c.peer.Era == wire.Legacy {
		c.p.wantLevel(c.req.Caller.LogLevel) // such a server knows no levels of single requests
	}
	inactive := c.cancel // another than before, where the call may be parked; the timer above may be reading that one
	c.clock.start(c.callTimeout(), func() { inactive(CauseInactivity) })
	defer func() { s.atUpstream.Observe((time.Since(began) - queued).Seconds()) }()
	extra, a, o, ok := c.begin()
	if !ok {
		return a, o
	}
	return c.rounds(extra)
}

// callTimeout is how long this call may be without a sign of life: the tool's own limit comes before the upstream's.
func (c *call) callTimeout() time.Duration {
	return cmp.Or(c.item.over.CallTimeout, c.item.Upstream.Config().CallTimeout)
}

// release gives back what the call holds.
func (c *call) release() {
	c.longest.Stop()
	c.clock.stop()
	if c.lease != nil {
		c.lease.Release()
	}
	if c.unlink != nil {
		c.unlink()
		c.cancel(nil)
	}
}

// rounds runs the exchange with the upstream, and again for as long as a modern one asks for more than the request
// brought and the client is a legacy one, which is asked here (2026-07-28, basic/patterns/mrtr).
func (c *call) rounds(extra []member) (Answer, Outcome) {
	for round := 0; ; round++ {
		x, err := c.start(extra)
		if err != nil {
			return c.fault(err)
		}
		c.x = x
		f, a, o := c.follow()
		if c.lost != nil {
			if err := c.again(); err != nil {
				return c.fault(err)
			}
			continue
		}
		if c.tasks.again {
			c.tasks.again = false
			continue
		}
		if f == nil {
			return a, o
		}
		if !c.drives(f) {
			return c.result(f)
		}
		if extra, err = c.gather(f, round); err != nil {
			return c.notGathered(err)
		}
	}
}

// follow reads what comes for the call until its answer. A result is given as its frame; anything else that ends the
// exchange, or parks the call, as what is answered for it.
func (c *call) follow() (*wire.Frame, Answer, Outcome) {
	for {
		f, err := c.next()
		if errors.Is(err, errQuiet) {
			if a, ok := c.park(); ok {
				return nil, a, OK
			}
			continue
		}
		if err != nil {
			if c.mayRepeat(err) {
				c.lost = err
				c.closeExchange(false)
				return nil, Answer{}, OK
			}
			a, o := c.fault(err)
			c.closeExchange(false)
			return nil, a, o
		}
		switch f.Kind {
		case wire.KindNotification:
			c.notified(f)
		case wire.KindRequest:
			c.asked(f)
		case wire.KindResponse:
			if c.takeTask(f) {
				continue
			}
			c.closeExchange(true)
			return f, Answer{}, OK
		case wire.KindError:
			c.closeExchange(true)
			if a, o, ok := c.redeclare(f); ok {
				return nil, a, o
			}
			a, o := c.refused(f)
			return nil, a, o
		}
	}
}

// closeExchange ends the exchange: what was asked meanwhile is over, and an upstream that has not answered is told that
// nobody waits any more.
func (c *call) closeExchange(answered bool) {
	c.asks.end()
	c.questions = nil
	if !answered && c.ctx.Err() != nil {
		c.lease.Cancel(c.upID, context.Cause(c.ctx).Error())
	}
	c.x.Close(!answered)
}

// refused makes the answer of an upstream's own error.
func (c *call) refused(f *wire.Frame) (Answer, Outcome) {
	if c.method == "completion/complete" && isMethodNotFound(f) {
		// Whoever offers something to complete need not know how.
		return Result(c.rawID(), c.p.eraResult([]byte(`{"completion":{"values":[],"total":0,"hasMore":false}}`), c.req.Caller.Era)), OK
	}
	if a, o, ok := c.urlsNeeded(f); ok {
		return a, o
	}
	c.noteVisits(f)
	return c.errorAnswer(f), RPCError
}

// checkHeaders compares the headers that repeat arguments, where the client's transport has headers.
func (c *call) checkHeaders() error {
	if c.req.Param == nil || c.req.Caller.Era != wire.Modern || len(c.item.params) == 0 {
		return nil
	}
	f := c.req.Frame
	return checkHeaders(c.item.params, f.Body.Get(f.Raw, "arguments").Of(f.Raw), c.req.Param)
}

// notified passes on a notification that belongs to this call, if the client can take it.
func (c *call) notified(f *wire.Frame) {
	switch f.Method {
	case "notifications/progress":
		// The stream of a call says whose it is, but what bears another token, or none, is no progress of it
		// (2025-11-25, progress, "Behavior Requirements").
		if id, ok := wire.ParseUpstreamID(f.Body.Get(f.Raw, "progressToken").Of(f.Raw)); !ok || id != c.sentAs {
			c.p.count.Drop(count.DropProgress)
			return
		}
		c.clock.alive()
		if len(c.token) == 0 {
			return // the token was ours, so that progress holds the call open
		}
		var p wire.Patch
		p.Reset(f.Raw)
		p.Replace(f.Body.Get(f.Raw, "progressToken"), c.token)
		c.req.Sink.Notify(p.Append(nil))
	case "notifications/message":
		c.clock.alive()
		if !passesLevel(f, c.req.Caller.LogLevel) {
			c.p.count.Drop(count.DropLog)
			return
		}
		c.req.Sink.Notify(f.Raw)
	case methodVisited:
		// The modern era has no such word: the client comes back when it is done (2026-07-28, changelog).
		from := c.req.Caller.source(c.item.Upstream)
		switch {
		case c.p.visits.another(from, f, c.req.Caller.Unit):
			c.p.catalog.onVisited(from, f)
		case c.req.Caller.Era == wire.Legacy:
			c.req.Sink.Notify(f.Raw)
		}
	case "notifications/cancelled":
		if !c.withdraw(wire.IDKey(f.Body.Get(f.Raw, "requestId").Of(f.Raw))) {
			c.p.count.Drop(count.DropNotification)
		}
	default:
		for k := range kinds {
			if kindInfo[k].changed == f.Method {
				c.p.catalog.announced(c.item.Upstream, f.Method)
				if own, ok := c.req.Caller.ownOf(c.item.Upstream); ok {
					c.p.overlays.changed(own.key)
				}
				return
			}
		}
		if f.Method == "notifications/resources/updated" {
			c.updated(f)
			return
		}
		c.req.Sink.Notify(f.Raw)
	}
}

// updated passes on that a resource has been updated, which came on the stream of this call.
func (c *call) updated(f *wire.Frame) {
	from := c.req.Caller.source(c.item.Upstream)
	if uri, ok := wire.DecodeString(f.Body.Get(f.Raw, "uri").Of(f.Raw)); ok {
		c.p.updated(from, uri)
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
	if ch := upstream.ChallengeOf(err); ch != nil {
		return c.denied(ch, err)
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
