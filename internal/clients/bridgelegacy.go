package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// pastSession is one session of the legacy era. It is immutable.
type pastSession struct {
	id, version string
	end         context.CancelFunc // of its standing stream
	ctx         context.Context
	ready       bool // the end of the handshake has been told when it was opened
}

// pastSide is what is kept for a client of the legacy era.
type pastSide struct {
	turn chan struct{} // holds a token while somebody opens a session

	mu          sync.Mutex
	initialize  []byte // the client's own message; nil before it has come
	initialized []byte
	now         *pastSession
}

// begin keeps the message with which the client initializes, so that a session that is lost can be opened again.
func (p *pastSide) begin(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.initialize, p.initialized = raw, nil
}

// finish keeps the message with which the client ends its handshake.
func (p *pastSide) finish(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.initialized = raw
}

func (p *pastSide) current() (now *pastSession, initialize, initialized []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.initialize, p.initialized
}

// leave ends the session at the proxy, with all that runs in it.
func (p *pastSide) leave(b *bridge) {
	if now, _, _ := p.current(); now != nil {
		b.drop(now)
	}
}

// drop ends a session.
func (b *bridge) drop(s *pastSession) {
	s.end()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), partGrace)
	defer cancel()
	req, err := b.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	s.headers(req.Header)
	resp, err := b.http.Do(req)
	if err != nil {
		b.Log.Info("the session could not be ended", zap.Error(withoutCredentials(err)))
		return
	}
	closeBody(resp)
}

func (s *pastSession) headers(h http.Header) {
	if s.id != "" {
		h.Set(headerSession, s.id)
	}
	if s.version != "" {
		h.Set(headerVersion, s.version)
	}
}

// legacy lets a message of the legacy era cross.
func (b *bridge) legacy(c *crossing) {
	if c.is("initialize") {
		b.initialize(c)
		return
	}
	s, err := b.session(c.ctx)
	if err != nil {
		b.unreachable(c, err)
		return
	}
	if !b.within(c, s) {
		return
	}
	if s, err = b.revive(c.ctx, s); err != nil {
		b.unavailable(c, err)
		return
	}
	if b.within(c, s) {
		b.unavailable(c, errLostAgain)
	}
}

// within sends a message in a session and relays what comes of it. It is true where the session is lost; then the message
// has had no effect (2025-11-25, transports, "Session Management").
func (b *bridge) within(c *crossing, s *pastSession) (lost bool) {
	end := c.is("notifications/initialized")
	if c.id != nil && !c.isDue() || end && s.ready {
		return false // it was cancelled while it waited, or has been told already
	}
	resp, err := b.post(c, s.headers)
	switch {
	case err != nil:
		b.unreachable(c, err)
		return false
	case resp.StatusCode == http.StatusNotFound && s.id != "":
		closeBody(resp)
		return true
	case isStream(resp):
		b.follow(c, s, resp)
	default:
		b.relay(c, resp)
		closeBody(resp)
	}
	if end {
		b.spawn(func() { b.stand(s) })
	}
	return false
}

// session gives the session there is, and opens one where the client has initialized in vain before.
func (b *bridge) session(ctx context.Context) (*pastSession, error) {
	now, initialize, _ := b.past.current()
	switch {
	case now != nil:
		return now, nil
	case initialize != nil:
		return b.revive(ctx, nil)
	}
	return &pastSession{}, nil // the proxy will tell the client what it has missed
}

// initialize lets the client's own handshake cross and keeps what comes of it.
func (b *bridge) initialize(c *crossing) {
	if !b.takeTurn(c.ctx) {
		return
	}
	defer b.giveTurn()
	resp, err := b.post(c, func(http.Header) {})
	if err != nil {
		b.unreachable(c, err)
		return
	}
	defer closeBody(resp)
	f, err := readAnswer(resp)
	switch {
	case err != nil:
		b.answer(c, failure(c.id, wire.CodeInternal, "transport_error", b.strange(resp)))
	case f.Kind == wire.KindError:
		b.deliver(c, f, resp)
	default:
		if old, _, _ := b.past.current(); old != nil {
			b.spawn(func() { b.drop(old) })
		}
		b.adopt(f, resp, false)
		b.answer(c, f.Raw)
	}
}

func (b *bridge) takeTurn(ctx context.Context) bool {
	select {
	case b.past.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *bridge) giveTurn() { <-b.past.turn }

// adopt makes the session that an answer to initialize opens the one there is; one that it replaces is ended.
func (b *bridge) adopt(f *wire.Frame, resp *http.Response, ready bool) *pastSession {
	s := &pastSession{id: resp.Header.Get(headerSession), ready: ready}
	s.version, _ = wire.DecodeString(f.Body.Get(f.Raw, "protocolVersion").Of(f.Raw))
	s.ctx, s.end = context.WithCancel(b.ctx)
	b.past.mu.Lock()
	old := b.past.now
	b.past.now = s
	b.past.mu.Unlock()
	if old != nil {
		old.end()
	}
	return s
}

// errRefused is wrapped where the proxy does not open a session again.
var errRefused = errors.New("it refuses to open a session again")

var errLostAgain = errors.New("a session that was opened again was lost at once")

// revive opens a session in place of one that is lost, with the client's own messages, unless somebody else has done so.
func (b *bridge) revive(ctx context.Context, lost *pastSession) (*pastSession, error) {
	if !b.takeTurn(ctx) {
		return nil, ctx.Err()
	}
	defer b.giveTurn()
	now, initialize, initialized := b.past.current()
	if now != lost && now != nil {
		return now, nil
	}
	resp, err := b.carry(ctx, initialize, &pastSession{})
	if err != nil {
		return nil, err
	}
	defer closeBody(resp)
	f, err := readAnswer(resp)
	if err != nil || f.Kind != wire.KindResponse {
		return nil, fmt.Errorf("%w: HTTP %s", errRefused, resp.Status)
	}
	s := b.adopt(f, resp, initialized != nil)
	b.Log.Info("a session was opened in place of one that is lost")
	if initialized != nil {
		if resp, err := b.carry(ctx, initialized, s); err == nil {
			closeBody(resp)
		}
		b.spawn(func() { b.stand(s) })
		b.announce(f)
	}
	return s, nil
}

// carry sends a message of our own accord.
func (b *bridge) carry(ctx context.Context, raw []byte, s *pastSession) (*http.Response, error) {
	req, err := b.request(ctx, http.MethodPost, raw)
	if err != nil {
		return nil, err
	}
	s.headers(req.Header)
	return b.http.Do(req)
}

// announce tells the client that every list may have changed that the proxy says can change: what happened while there
// was no session is unknown.
func (b *bridge) announce(f *wire.Frame) {
	caps, _ := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "capabilities"))
	for _, name := range []string{"tools", "prompts", "resources"} {
		o, _ := wire.ObjectAt(f.Raw, caps.Get(f.Raw, name))
		if string(o.Get(f.Raw, "listChanged").Of(f.Raw)) == "true" {
			b.send([]byte(`{"jsonrpc":"2.0","method":"notifications/` + name + `/list_changed"}`))
		}
	}
}

// get opens a stream of the session, from behind an event where one is named.
func (b *bridge) get(ctx context.Context, s *pastSession, lastID string) (*http.Response, error) {
	req, err := b.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", eventStream)
	s.headers(req.Header)
	if lastID != "" {
		req.Header.Set(headerLastID, lastID)
	}
	return b.http.Do(req)
}

// stand relays what belongs to no request, for as long as the session is the one there is.
func (b *bridge) stand(s *pastSession) {
	var m mark
	var pauses backoff
	for {
		resp, err := b.get(s.ctx, s, m.id)
		switch {
		case err != nil:
		case isStream(resp):
			pauses.reset()
			b.events(nil, resp.Body, &m, nil)
			_ = resp.Body.Close()
		case resp.StatusCode == http.StatusNotFound && s.id != "":
			closeBody(resp)
			if _, err := b.revive(b.ctx, s); err == nil {
				return // the new session has a stream of its own
			}
		case resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests:
			closeBody(resp)
		default: // there is no such stream
			closeBody(resp)
			return
		}
		if !pauses.wait(s.ctx, m.retry) {
			return
		}
	}
}

// follow relays the stream that answers a request. Where it breaks, and its events have ids, it is taken up again.
func (b *bridge) follow(c *crossing, s *pastSession, resp *http.Response) {
	var m mark
	var pauses backoff
	answered := b.events(c, resp.Body, &m, nil)
	c.closeStream(resp)
	for !answered && m.id != "" && c.frame != nil && c.isDue() && pauses.wait(c.ctx, m.retry) {
		resp, err := b.get(c.ctx, s, m.id)
		if err != nil {
			if pauses.next > longestPause {
				break
			}
			continue
		}
		if !isStream(resp) {
			closeBody(resp)
			break
		}
		pauses.reset()
		answered = b.events(c, resp.Body, &m, nil)
		c.closeStream(resp)
	}
	if !answered && c.isDue() && c.frame != nil {
		b.unreachable(c, errStreamEnded)
	}
}

// cancelLegacy brings a cancel to the proxy, but not before what it cancels: they travel on different connections. It is
// said again where nothing ends soon, since even then it may have come first.
func (b *bridge) cancelLegacy(c *crossing, raw []byte) {
	select {
	case <-c.written:
	case <-c.done:
		return
	case <-b.ctx.Done():
		return
	}
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	for range 2 {
		s, err := b.session(ctx)
		if err != nil {
			return
		}
		if resp, err := b.carry(ctx, bytes.Clone(raw), s); err == nil {
			closeBody(resp)
		}
		if waitFor(ctx, c.done) {
			return
		}
	}
}

// waitFor waits a second for the end of something.
func waitFor(ctx context.Context, done <-chan struct{}) bool {
	ctx, stop := context.WithTimeout(ctx, firstPause)
	defer stop()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
