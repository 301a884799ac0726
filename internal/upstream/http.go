package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/credentials"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// httpConn is a conversation over streamable HTTP: one POST for each call, so that a failure is that call's alone. In
// the legacy era it has a session, which is replaced once when the server has lost it.
type httpConn struct {
	env    *env
	rt     http.RoundTripper
	url    *url.URL
	proto  *http.Request                                // what all requests have in common
	static http.Header                                  // configured headers and credentials
	lost   func()                                       // told when a lost session has been replaced
	redo   func(ctx context.Context, c *httpConn) error // does the handshake again

	peer    atomic.Pointer[Peer]
	session atomic.Pointer[string]
	opening atomic.Pointer[string] // the session that a handshake is opening: it is nobody else's until that is complete
	renewal sync.Mutex             // held while a lost session is replaced

	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     group
	stream context.CancelFunc // ends the standing GET stream
	stands atomic.Bool        // the server has served a standing stream
	aside  atomic.Bool        // it has reported progress there
	calls  *mux               // under way, for what comes for them on the standing stream
}

func newHTTPConn(e *env, cfg *config.Server, rt http.RoundTripper) (*httpConn, error) {
	u, err := url.Parse(cfg.URL.Reveal())
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("url is not an http or https URL")
	}
	c := &httpConn{env: e, rt: rt, url: u, static: bindHeaders(staticHeaders(cfg), e.creds), lost: func() {}, stream: func() {}}
	c.proto = &http.Request{URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if host := c.static.Get("Host"); host != "" {
		c.proto.Host = host
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.calls = newMux(e, c.replySoon)
	return c, nil
}

// protocolHeaders are ours alone: a configured header never takes their place.
var protocolHeaders = map[string]bool{
	"Content-Type": true, "Accept": true, "Mcp-Session-Id": true, "Mcp-Protocol-Version": true, "Mcp-Method": true,
	"Mcp-Name": true, "Last-Event-Id": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true,
}

func staticHeaders(cfg *config.Server) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
		"User-Agent":   {"mcp-proxy"},
	}
	if name, value := cfg.SignInHeader(); name != "" {
		h.Set(name, value.Reveal())
	}
	for k, v := range cfg.Headers {
		if k = http.CanonicalHeaderKey(k); !protocolHeaders[k] {
			h[k] = []string{v.Reveal()}
		}
	}
	return h
}

// bindHeaders adds the credentials that a conversation is bound to. They take the place of no configured header.
func bindHeaders(static http.Header, creds *Credentials) http.Header {
	for k, v := range creds.Headers() {
		if _, ours := static[k]; !ours && !protocolHeaders[k] {
			static[k] = v
		}
	}
	return static
}

// request makes one HTTP request of this conversation.
func (c *httpConn) request(ctx context.Context, verb string, body []byte, session string) *http.Request {
	h := make(http.Header, len(c.static)+5)
	for k, v := range c.static {
		h[k] = v
	}
	if p := c.peer.Load(); p != nil && p.Version >= wire.Rev20250618 {
		h["Mcp-Protocol-Version"] = []string{p.Version}
	}
	if session != "" {
		h["Mcp-Session-Id"] = []string{session}
	}
	req := c.proto.WithContext(ctx)
	req.Method, req.Header = verb, h
	setBody(req, body)
	return req
}

func (c *httpConn) sessionID() string {
	if s := c.session.Load(); s != nil {
		return *s
	}
	return ""
}

// openingID is the session of the handshake that is under way or was the last.
func (c *httpConn) openingID() string {
	if s := c.opening.Load(); s != nil {
		return *s
	}
	return ""
}

// forward adds headers of a client. None takes the place of the protocol's or of a configured one.
func (c *httpConn) forward(h, from http.Header) {
	for k, v := range from {
		if _, ours := c.static[k]; !ours && !protocolHeaders[k] {
			h[k] = v
		}
	}
}

// mirror sets the headers that repeat what a modern request says in its body.
func mirror(h http.Header, out *Outgoing, version string) {
	h["Mcp-Protocol-Version"] = []string{version}
	h["Mcp-Method"] = []string{out.Method}
	if out.Name != "" {
		h["Mcp-Name"] = []string{wire.EncodeHeader(out.Name)}
	}
	for _, p := range out.Params {
		h["Mcp-Param-"+p.Name] = []string{wire.EncodeHeader(p.Value)}
	}
}

func (c *httpConn) Start(_ context.Context, out *Outgoing) (Exchange, error) {
	if c.own() || c.tellsAside(out) {
		return c.startOwn(out)
	}
	return &httpExchange{c: c, out: out}, nil
}

// roundTrip sends a request and tells apart what never left from what may have arrived.
func (c *httpConn) roundTrip(req *http.Request, body []byte) (*http.Response, error) {
	resp, err := c.follow(req, body)
	if err == nil {
		return resp, nil
	}
	var astray *redirectError
	if errors.As(err, &astray) {
		return nil, c.transportError(err)
	}
	return nil, c.lostOnTheWay(req.Context(), err)
}

// follow sends a request and follows redirects that stay at the same origin and keep the method. Others are a
// *redirectError.
func (c *httpConn) follow(req *http.Request, body []byte) (*http.Response, error) {
	for hop := 0; ; hop++ {
		resp, err := c.rt.RoundTrip(req)
		if err != nil || !redirects(req.Method, resp.StatusCode) {
			return resp, err
		}
		to, err := resp.Location()
		_ = resp.Body.Close()
		switch {
		case err != nil:
			return nil, &redirectError{fmt.Sprintf("HTTP %d without a usable Location", resp.StatusCode)}
		case to.Scheme != req.URL.Scheme || to.Host != req.URL.Host:
			return nil, &redirectError{fmt.Sprintf("the server redirects to another origin (%s://%s), which is not followed; change the url", to.Scheme, to.Host)}
		case hop == maxRedirects:
			return nil, &redirectError{fmt.Sprintf("more than %d redirects", maxRedirects)}
		}
		c.env.moved.Do(func() {
			c.env.log.Warn("the server redirects; set the url to where it leads", zap.String("path", c.env.mask.text(to.Path)))
		})
		next := req.Clone(req.Context())
		next.URL = to
		setBody(next, body)
		req = next
	}
}

// redirects says whether a status leads elsewhere with the same method. Of a GET the older ones do so too.
func redirects(verb string, status int) bool {
	switch status {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		return verb == http.MethodGet
	}
	return false
}

// redirectError is a redirect that is not followed.
type redirectError struct{ text string }

func (e *redirectError) Error() string { return e.text }

const maxRedirects = 3

func (c *httpConn) transportError(err error) error {
	return &Error{Upstream: c.env.id, Reason: ReasonTransport, Err: err}
}

// lostOnTheWay classifies a failed round trip. A connection that was never made carried nothing; with it the whole
// upstream is found to be down.
func (c *httpConn) lostOnTheWay(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var noToken *credentials.Error
	if errors.As(err, &noToken) {
		return &Error{Upstream: c.env.id, Reason: ReasonUnavailable, Err: noToken}
	}
	err = c.env.mask.error(withoutURL(err))
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || isTLS(err) {
		down := &Error{Upstream: c.env.id, Reason: ReasonUnavailable, Err: errors.Join(ErrNeverSent, err)}
		c.cancel(atStage("run", err))
		return down
	}
	return &Error{Upstream: c.env.id, Reason: ReasonUncertain, Err: fmt.Errorf("the connection was lost: %w", err)}
}

func isTLS(err error) bool {
	s := err.Error()
	return strings.HasPrefix(s, "tls: ") || strings.HasPrefix(s, "x509: ") || strings.Contains(s, "TLS handshake")
}

// withoutURL drops the URL that net/http puts before its errors: it may carry credentials.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

func (c *httpConn) Notify(ctx context.Context, frame []byte) error {
	session := c.sessionID()
	if string(frame) == initialized {
		session = c.openingID()
	}
	req := c.request(ctx, http.MethodPost, frame, session)
	if p := c.peer.Load(); p != nil && p.Era == wire.Modern {
		mirror(req.Header, &Outgoing{Method: "notifications/cancelled"}, p.Version)
	}
	resp, err := c.roundTrip(req, frame)
	if err != nil {
		return err
	}
	discard(resp)
	if resp.StatusCode/100 != 2 {
		return c.transportError(c.refusal(resp, ""))
	}
	return nil
}

// Cancel posts the notification of the legacy era; in the modern one the closed response is the cancel
// (2026-07-28, streamable HTTP, "Cancellation").
func (c *httpConn) Cancel(ctx context.Context, id uint64, reason string) error {
	if p := c.peer.Load(); p == nil || p.Era == wire.Modern {
		return nil
	}
	return c.Notify(ctx, cancelFrame(id, reason))
}

func (c *httpConn) Done() <-chan struct{} { return c.ctx.Done() }

func (c *httpConn) Err() error { return context.Cause(c.ctx) }

func (c *httpConn) negotiated(p *Peer) { c.peer.Store(p) }

// opened puts the session of a handshake that is complete in its place, and begins its standing stream.
func (c *httpConn) opened() {
	if s := c.opening.Load(); s != nil {
		c.session.Store(s)
	}
	if c.peer.Load().Era != wire.Legacy {
		return
	}
	c.stream()
	ctx, cancel := context.WithCancel(c.ctx)
	c.stream = cancel
	answered := make(chan struct{})
	c.wg.Go(func() { c.standingStream(ctx, sync.OnceFunc(func() { close(answered) })) })
	if c.own() {
		c.listening(answered)
	}
}

// Close ends the session at the server and everything that runs for the connection.
func (c *httpConn) Close() {
	c.cancel(ErrClosed)
	c.wg.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	session, opening := c.sessionID(), c.openingID()
	c.end(ctx, session)
	if opening != session {
		c.end(ctx, opening) // of a handshake that has failed
	}
}

// end tells the server that a session is over.
func (c *httpConn) end(ctx context.Context, session string) {
	if session == "" {
		return
	}
	if resp, err := c.follow(c.request(ctx, http.MethodDelete, nil, session), nil); err == nil {
		discard(resp)
	}
}

// closeTimeout bounds the goodbye to a server.
const closeTimeout = 2 * time.Second
