package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// httpExchange is one POST and what comes back on it. The goroutine of the call does all of it.
type httpExchange struct {
	c      *httpConn
	out    *Outgoing
	resp   *http.Response
	events *wire.EventReader
	queued []*wire.Frame // of a batch
	held   int           // bytes of the budget
	ended  bool

	session  string // that the request was sent with
	repeated bool   // the request has been sent again, in a new session
	place    place  // in the stream
	resumes  int
}

// Next sends the request, the first time, and reads on to the next frame of this call.
func (x *httpExchange) Next(ctx context.Context) (*wire.Frame, error) {
	if x.resp == nil {
		if err := x.post(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if len(x.queued) > 0 {
			f := x.queued[0]
			x.queued = x.queued[1:]
			return f, nil
		}
		if x.ended {
			return nil, x.fault(ReasonUncertain, errors.New("the stream ended without an answer"))
		}
		if err := x.more(ctx); err != nil {
			return nil, err
		}
	}
}

// post sends the request.
func (x *httpExchange) post(ctx context.Context) error {
	if x.session = ""; x.out.Method != "initialize" {
		x.session = x.c.sessionID()
	}
	resp, err := x.c.roundTrip(x.request(ctx), x.out.Frame) //nolint:bodyclose // the exchange owns it; Close closes it
	if err != nil {
		return err
	}
	x.resp = resp
	return x.begin()
}

func (x *httpExchange) request(ctx context.Context) *http.Request {
	req := x.c.request(ctx, http.MethodPost, x.out.Frame, x.session)
	if p := x.c.peer.Load(); p != nil && p.Era == wire.Modern {
		mirror(req.Header, x.out, p.Version)
	} else if p == nil && x.out.Method == "server/discover" {
		mirror(req.Header, x.out, wire.LatestModern)
	}
	x.c.forward(req.Header, x.out.Headers)
	return req
}

// begin looks at the head of the answer.
func (x *httpExchange) begin() error {
	if x.out.Method == "initialize" {
		s := x.resp.Header.Get("Mcp-Session-Id")
		x.c.opening.Store(&s)
	}
	if mediaType(x.resp.Header) == "text/event-stream" && x.resp.StatusCode == http.StatusOK {
		x.events = wire.NewEventReader(x.resp.Body, x.c.env.maxFrame)
	}
	return nil
}

// more reads the next event, or the whole body.
func (x *httpExchange) more(ctx context.Context) error {
	if x.events == nil {
		x.ended = true
		return x.whole(ctx)
	}
	x.release()
	ev, err := x.events.Next()
	switch {
	case errors.Is(err, wire.ErrEventTooLarge):
		x.c.env.count.Limit(count.LimitFrame)
		return x.fault(ReasonTransport, fmt.Errorf("%w (%d bytes)", errFrameTooLong, x.c.env.maxFrame))
	case errors.Is(err, io.EOF):
		if x.resume(ctx, io.EOF) != nil {
			x.ended = true
		}
		return ctxError(ctx)
	case err != nil:
		return x.resume(ctx, x.c.lostOnTheWay(ctx, err))
	}
	x.place.note(&ev)
	x.resumes = 0
	if len(ev.Data) == 0 || ev.Name != "" && ev.Name != "message" {
		return nil // priming events, pings
	}
	return x.take(append(wire.GetBuffer(len(ev.Data))[:0], ev.Data...))
}

// ctxError is the cause of a context that has ended; nil before.
func ctxError(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// whole reads an answer that is no stream.
func (x *httpExchange) whole(ctx context.Context) error {
	body, err := readBody(x.resp, x.c.env.maxFrame)
	switch {
	case errors.Is(err, errFrameTooLong):
		x.c.env.count.Limit(count.LimitFrame)
		return x.fault(ReasonTransport, err)
	case err != nil:
		return x.c.lostOnTheWay(ctx, fmt.Errorf("reading the answer: %w", err))
	}
	if x.session != "" && x.out.Method != "initialize" && lostSession(x.resp.StatusCode, body) {
		return x.again(ctx)
	}
	if len(body) > 0 && (body[0] == '{' || body[0] == '[' || mediaType(x.resp.Header) == "application/json") {
		if err = x.take(body); err == nil && len(x.queued) > 0 {
			return nil
		}
	}
	if x.resp.StatusCode/100 != 2 || err == nil {
		return x.fault(x.statusReason(), x.statusFault())
	}
	return err
}

// statusReason tells whether a refused request has certainly not run.
func (x *httpExchange) statusReason() Reason {
	switch x.resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return ReasonUnavailable
	}
	return ReasonTransport
}

func (x *httpExchange) statusFault() error {
	e := x.c.refusal(x.resp, http.StatusText(x.resp.StatusCode))
	if e.code/100 == 2 {
		e.text = "an answer without a message"
	}
	if t := mediaType(x.resp.Header); t != "" && t != "application/json" {
		e.text += ", " + t
	}
	return e
}

// take parses what came, one message or a batch of them, and keeps what belongs to this call.
func (x *httpExchange) take(data []byte) error {
	if !x.c.env.budget.take(len(data)) {
		x.c.env.count.Limit(count.LimitBuffered)
		return x.fault(ReasonOverloaded, errBudget)
	}
	x.held += len(data)
	parts := [][]byte{data}
	if wire.IsBatch(data) {
		var err error
		if parts, err = wire.SplitBatch(data, maxBatch); err != nil {
			return x.fault(ReasonTransport, fmt.Errorf("the answer is not valid: %w", err))
		}
	}
	for _, p := range parts {
		f, err := x.c.env.parse(p)
		if err != nil {
			return x.fault(ReasonTransport, fmt.Errorf("the answer is not valid: %w", err))
		}
		if f = x.mine(f); f != nil {
			x.queued = append(x.queued, f)
		}
	}
	return nil
}

// mine keeps the frames of this call: its answer, and what comes with it.
func (x *httpExchange) mine(f *wire.Frame) *wire.Frame {
	switch f.Kind {
	case wire.KindNotification:
		return f
	case wire.KindRequest:
		if f.Method == "ping" {
			x.c.replySoon(pong(f))
			return nil
		}
		return f
	}
	if id, ok := wire.ParseUpstreamID(f.ID.Of(f.Raw)); ok && id == x.out.ID {
		return f
	}
	if f.Kind == wire.KindError && x.events == nil && isRPCError(f) {
		// An error body of our own POST is its answer, whatever id the server put into it.
		raw := append([]byte(`{"jsonrpc":"2.0","id":`), wire.AppendUpstreamID(nil, x.out.ID)...)
		raw = append(append(raw, `,"error":`...), f.Error.Of(f.Raw)...)
		if g, err := x.c.env.parse(append(raw, '}')); err == nil {
			return g
		}
	}
	x.c.env.count.Drop(count.DropAnswer)
	return nil
}

func (x *httpExchange) fault(r Reason, err error) error {
	return &Error{Upstream: x.c.env.id, Reason: deniedOr(r, err), Err: err}
}

func (x *httpExchange) Respond(ctx context.Context, frame []byte) error {
	return x.c.Notify(ctx, frame)
}

// Close ends the response; for a modern server a response that is closed early is the cancel.
func (x *httpExchange) Close(bool) {
	if x.resp != nil {
		if x.ended {
			_, _ = io.CopyN(io.Discard, x.resp.Body, 1)
		}
		_ = x.resp.Body.Close()
	}
	x.release()
	x.ended = true
}

// release gives back what the frames that have been taken held of the budget.
func (x *httpExchange) release() {
	x.c.env.budget.give(x.held)
	x.held = 0
}
