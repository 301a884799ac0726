package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Many servers ask and report on the standing stream of their session instead of the stream of the call that they work on.
// Where others share the session nobody can tell whose such a question is. In a session that is one client's own it goes,
// as on a child's pipe, to the only call that is unanswered. Progress names its call by the token in any session.

// ownExchange is one POST for which something may come on the standing stream: that and what comes on its own meet in one
// mailbox.
type ownExchange struct {
	boxExchange
	post   *httpExchange
	cancel context.CancelFunc
	read   sync.WaitGroup
	// answered is closed when the POST is read to its answer or failed, and not touched any more.
	answered chan struct{}
}

// own says whether calls on this connection are those of one client, in an era that has a standing stream.
func (c *httpConn) own() bool {
	p := c.peer.Load()
	return c.env.own && p != nil && p.Era == wire.Legacy
}

// tellsAside says whether progress of a request is to be looked for on the standing stream: the client wants to hear of it,
// or the server is known to report there, and then it is what holds the call open.
func (c *httpConn) tellsAside(out *Outgoing) bool {
	return c.stands.Load() && (out.Progress || c.aside.Load())
}

// progressAside brings progress that came on the standing stream to its call.
func (c *httpConn) progressAside(f *wire.Frame) {
	if _, ok := wire.ParseUpstreamID(f.Body.Get(f.Raw, "progressToken").Of(f.Raw)); ok {
		c.aside.Store(true)
	}
	c.calls.dispatch(f)
}

func (c *httpConn) startOwn(out *Outgoing) (Exchange, error) {
	box, err := c.calls.open(out)
	if err != nil {
		return nil, err
	}
	x := &ownExchange{post: &httpExchange{c: c, out: out}, cancel: func() {}, answered: make(chan struct{})}
	x.boxExchange = boxExchange{m: c.calls, id: out.ID, box: box, write: x.begin, send: c.Notify}
	return x, nil
}

// begin sends the request and reads what comes, until Close.
func (x *ownExchange) begin(ctx context.Context) error {
	ctx, x.cancel = context.WithCancel(ctx)
	x.read.Go(func() { x.follow(ctx) })
	return nil
}

func (x *ownExchange) follow(ctx context.Context) {
	for {
		f, err := x.post.Next(ctx)
		switch {
		case err != nil:
			close(x.answered)
			x.box.close(err)
			return
		case f.Kind == wire.KindResponse || f.Kind == wire.KindError:
			close(x.answered)
			x.box.put(f)
			return
		case !x.box.put(f) && f.Kind == wire.KindRequest:
			x.post.c.replySoon(Refusal(f))
		}
	}
}

// Close implements Exchange. A response that has been read to its end leaves its connection for the next request.
func (x *ownExchange) Close(cancelled bool) {
	if x.write == nil {
		select {
		case <-x.answered:
		default:
			x.cancel()
		}
		x.read.Wait()
	}
	x.post.Close(cancelled)
	x.cancel()
	x.boxExchange.Close(cancelled)
}

// listenTimeout is how long a session that is one client's own waits for the head of its standing stream before its first
// call: what a server has to say there before anybody listens is lost with some.
const listenTimeout = time.Second

// listening waits until the server has answered the request for a standing stream.
func (c *httpConn) listening(answered <-chan struct{}) {
	wait(c.ctx, listenTimeout, answered, nil)
}
