package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// sseConn is a conversation over the HTTP+SSE transport of 2024-11-05: one GET stream on which everything comes, and a
// URL to post to that the first event tells.
type sseConn struct {
	*mux
	*httpConn
	body io.ReadCloser
	told string // where to post as the configuration says; empty where the server does

	mu   sync.Mutex
	post *url.URL
}

// dialSSE opens the stream and waits for the endpoint event, as long as ctx lasts.
func dialSSE(ctx context.Context, e *env, cfg *config.Server, rt http.RoundTripper) (*sseConn, error) {
	hc, err := newHTTPConn(e, cfg, rt)
	if err != nil {
		return nil, err
	}
	c := &sseConn{httpConn: hc, told: cfg.MessageURL}
	c.mux = newMux(e, c.answerSoon)
	req := hc.request(hc.ctx, http.MethodGet, nil, "")
	req.Header["Accept"] = []string{"text/event-stream"}
	delete(req.Header, "Content-Type")
	// The stream outlives the dialling; only the wait for its beginning ends with ctx.
	stop := context.AfterFunc(ctx, func() { hc.cancel(context.Cause(ctx)) })
	defer stop()
	resp, err := hc.roundTrip(req, nil)
	if err != nil {
		hc.cancel(err)
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		discard(resp)
		hc.cancel(ErrClosed)
		return nil, hc.refusal(resp, "GET gives no event stream")
	}
	c.body = resp.Body
	events := wire.NewEventReader(resp.Body, e.maxFrame)
	// What the server says of where to post is relative to where its stream was found in the end.
	if err := c.endpoint(resp.Request.URL, events); err != nil {
		_ = resp.Body.Close()
		if ctx.Err() != nil {
			err = errors.Join(errNotSSE, context.Cause(ctx))
		}
		hc.cancel(err)
		return nil, err
	}
	hc.wg.Go(func() { c.run(events) })
	return c, nil
}

// endpoint waits for the event that tells where to post. The server is not trusted with another origin, the configuration is.
func (c *sseConn) endpoint(at *url.URL, events *wire.EventReader) error {
	for {
		ev, err := events.Next()
		if err != nil {
			return fmt.Errorf("%w (%w)", errNotSSE, err)
		}
		if ev.Name != "endpoint" {
			continue
		}
		to, err := at.Parse(string(ev.Data))
		if err != nil {
			return fmt.Errorf("the endpoint event holds no URL: %w", err)
		}
		if c.told != "" {
			query := to.RawQuery // it names the session
			if to, err = at.Parse(c.told); err != nil {
				return fmt.Errorf("message_url is no URL: %w", err)
			}
			to.RawQuery = query
		} else if to.Scheme != c.url.Scheme || to.Host != c.url.Host {
			return fmt.Errorf("the endpoint event leads to another origin (%s://%s), which is not followed", to.Scheme, to.Host)
		}
		c.mu.Lock()
		c.post = to
		c.mu.Unlock()
		return nil
	}
}

func (c *sseConn) run(events *wire.EventReader) {
	defer c.body.Close()
	for {
		ev, err := events.Next()
		if errors.Is(err, wire.ErrEventTooLarge) {
			c.tooLong(ev.Data, events)
			continue
		}
		if err != nil {
			err = fmt.Errorf("the event stream ended: %w", withoutURL(err))
			c.mux.fail(&Error{Upstream: c.httpConn.env.id, Reason: ReasonUncertain, Err: err})
			c.httpConn.cancel(atStage("run", err))
			return
		}
		if len(ev.Data) == 0 || ev.Name != "" && ev.Name != "message" {
			continue
		}
		f, err := c.httpConn.env.parse(append([]byte(nil), ev.Data...))
		if err != nil {
			c.httpConn.env.noise("an event", ev.Data)
			continue
		}
		c.dispatch(f)
	}
}

// tooLong fails the call whose answer is too long. Its id stands before or after what is long in it.
func (c *sseConn) tooLong(head []byte, events *wire.EventReader) {
	e := c.httpConn.env
	e.count.Limit(count.LimitFrame)
	l := line{head: head}
	l.tail, _ = events.Skip() // its error comes again with the next event
	err := &Error{Upstream: e.id, Reason: ReasonTransport, Err: fmt.Errorf("%w (%d bytes)", errFrameTooLong, e.maxFrame)}
	if !c.failLong(l, err) {
		e.noise("an event that is too long", head)
	}
}

// send posts one message; its answer, if it has one, comes on the stream.
func (c *sseConn) send(ctx context.Context, frame []byte) error {
	return c.sendWith(ctx, frame, nil)
}

func (c *sseConn) sendWith(ctx context.Context, frame []byte, of http.Header) error {
	req := c.httpConn.request(ctx, http.MethodPost, frame, "")
	c.mu.Lock()
	req.URL = c.post
	c.mu.Unlock()
	c.forward(req.Header, of)
	resp, err := c.roundTrip(req, frame)
	if err != nil {
		return err
	}
	discard(resp)
	if resp.StatusCode/100 != 2 {
		refused := c.refusal(resp, "")
		return &Error{Upstream: c.httpConn.env.id, Reason: deniedOr(ReasonTransport, refused), Err: fmt.Errorf("posting to %s, %s: %w", c.shown(req.URL), c.whoSays(), refused)}
	}
	return nil
}

// whoSays tells where the address to post to comes from, and who can say another one.
func (c *sseConn) whoSays() string {
	if c.told != "" {
		return "which is message_url"
	}
	return "which the stream at " + c.shown(c.url) + " has announced and message_url can correct"
}

// shown is an address as errors may tell it: without the query, without known secrets, and without what may be the id of a
// session.
func (c *sseConn) shown(u *url.URL) string {
	parts := strings.Split(u.Path, "/")
	for i, p := range parts {
		if len(p) >= 20 {
			parts[i] = "…"
		}
	}
	return c.httpConn.env.mask.text(strings.Join(parts, "/"))
}

func (c *sseConn) Start(_ context.Context, out *Outgoing) (Exchange, error) {
	box, err := c.open(out)
	if err != nil {
		return nil, err
	}
	x := &boxExchange{m: c.mux, id: out.ID, box: box, send: c.send}
	x.write = func(ctx context.Context) error { return c.sendWith(ctx, out.Frame, out.Headers) }
	return x, nil
}

func (c *sseConn) Notify(ctx context.Context, frame []byte) error { return c.send(ctx, frame) }

func (c *sseConn) Cancel(ctx context.Context, id uint64, reason string) error {
	return c.send(ctx, cancelFrame(id, reason))
}

// opened does not begin a standing stream: there is only the one.
func (c *sseConn) opened() {}

func (c *sseConn) answerSoon(frame []byte) {
	c.httpConn.wg.Soon(func() {
		ctx, cancel := context.WithTimeout(c.httpConn.ctx, replyTimeout)
		defer cancel()
		_ = c.send(ctx, frame)
	})
}

func (c *sseConn) Close() {
	c.httpConn.cancel(ErrClosed)
	c.mux.fail(&Error{Upstream: c.httpConn.env.id, Reason: ReasonUncertain, Err: ErrClosed})
	c.httpConn.wg.Stop()
}
