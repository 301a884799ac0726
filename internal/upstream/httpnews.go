package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// renew replaces a session that the server has lost, once for all calls that notice. The caller waits for it. A call that
// begins meanwhile goes out with the lost session, which proves that it has not run, and waits here as well: without any it
// would be refused, and with the new one it might come before the end of the handshake.
func (c *httpConn) renew(ctx context.Context, lost string) error {
	c.renewal.Lock()
	defer c.renewal.Unlock()
	if c.sessionID() != lost {
		return nil // somebody else has done it
	}
	if err := c.redo(ctx, c); err != nil {
		// Whoever calls next finds it lost again, and tries anew.
		if ctx.Err() == nil {
			c.cancel(atStage("handshake", err))
		}
		return err
	}
	c.opened()
	c.lost()
	return nil
}

// renewByStream replaces a session that the server has lost, when the standing stream is the first to find out. Until the
// next call nobody else would, and what is watched would stay silent. Where it succeeds it has begun a new stream.
func (c *httpConn) renewByStream(session string) error {
	if c.env.stayLost {
		c.loseFor(session)
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, renewTimeout)
	defer cancel()
	return c.renew(ctx, session)
}

const (
	renewTimeout   = 15 * time.Second
	streamPause    = time.Second
	streamMaxPause = time.Minute
)

// standingStream holds the GET stream of a legacy session, on which the server tells what belongs to no call. A server
// that offers none is asked once. One that ends it early costs nothing but the pause before the next try.
// answered is called when the server has answered, in whatever way.
func (c *httpConn) standingStream(ctx context.Context, answered func()) {
	defer answered()
	pause := streamPause
	var at place // where the next stream goes on
	for ctx.Err() == nil {
		began := time.Now()
		if !c.readStream(ctx, &at, answered) {
			return
		}
		if time.Since(began) > streamMaxPause {
			pause = streamPause
		}
		wait(ctx, max(pause, at.pause), nil, nil)
		pause = min(2*pause, streamMaxPause)
	}
}

// readStream reads one GET stream to its end; false where the server offers none.
func (c *httpConn) readStream(ctx context.Context, at *place, answered func()) (again bool) {
	session := c.sessionID()
	resp, err := c.get(ctx, at.id)
	answered()
	if err != nil {
		var astray *redirectError
		return !errors.As(err, &astray)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound && at.been && session != "" {
		return c.renewByStream(session) != nil
	}
	offered := resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream"
	c.stands.Store(offered)
	if !offered {
		c.env.log.Debug("no standing stream", zap.Int("status", resp.StatusCode))
		if again = comesLater(resp.StatusCode, at.been); !again && at.been {
			c.env.peer.Missed()
		}
		return again
	}
	if at.been {
		c.env.peer.Missed()
	}
	at.been = true
	events := wire.NewEventReader(resp.Body, c.env.maxFrame)
	for {
		ev, err := events.Next()
		if errors.Is(err, wire.ErrEventTooLarge) {
			c.env.count.Limit(count.LimitFrame)
			continue
		}
		if err != nil {
			return true
		}
		at.note(&ev)
		if len(ev.Data) > 0 && (ev.Name == "" || ev.Name == "message") {
			c.news(append([]byte(nil), ev.Data...))
		}
	}
}

// comesLater says whether a server that refuses its standing stream may have one later: what stands before it says so, or it
// fails at what it has been able to do.
func comesLater(status int, been bool) bool {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return been && status >= 500
}

// news handles a frame that comes beside the streams of the calls. A request that comes this way is nobody's and is
// refused, unless all calls are one client's. Progress says itself whose it is.
func (c *httpConn) news(data []byte) {
	f, err := c.env.parse(data)
	if err != nil {
		c.env.noise("an event on the standing stream", data)
		return
	}
	switch {
	case c.own() && (f.Kind == wire.KindNotification || f.Kind == wire.KindRequest):
		c.calls.dispatch(f)
	case f.Kind == wire.KindNotification && f.Method == "notifications/progress":
		c.progressAside(f)
	case f.Kind == wire.KindNotification:
		c.env.peer.Notification(f)
	case f.Kind == wire.KindRequest:
		if f.Method == "ping" {
			c.replySoon(pong(f))
			return
		}
		c.env.peer.Refused(f, false)
		c.replySoon(Refusal(f))
	default:
		c.env.count.Drop(count.DropAnswer)
	}
}

// replySoon posts an answer off everybody's path.
func (c *httpConn) replySoon(frame []byte) {
	c.wg.Soon(func() {
		ctx, cancel := context.WithTimeout(c.ctx, replyTimeout)
		defer cancel()
		if err := c.Notify(ctx, frame); err != nil {
			c.env.log.Debug("an answer to the upstream was not taken", zap.Error(err))
		}
	})
}
