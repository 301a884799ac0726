package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// connect starts or reaches the upstream and does the handshake, within connect_timeout. Nothing is left running where
// it fails.
func (u *Upstream) connect(ctx context.Context, e *env) (conn, *Peer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, u.cfg.ConnectTimeout, errConnectTimeout(u.cfg.ConnectTimeout))
	defer cancel()
	known := u.knownEra()
	if known == nil {
		// The era is found once: further connections wait for the first one to find it.
		select {
		case u.probing <- struct{}{}:
			defer func() { <-u.probing }()
		case <-ctx.Done():
			return nil, nil, atStage("probe", context.Cause(ctx))
		}
		known = u.knownEra()
	}
	c, peer, err := u.attempt(ctx, e, known)
	if err != nil && ctx.Err() == nil {
		c, peer, err = u.again(ctx, e, known, err)
	}
	if err != nil {
		return nil, nil, u.withOtherFlavour(err)
	}
	u.learnEra(peer.Era)
	return c, peer, nil
}

func errConnectTimeout(d time.Duration) error {
	return fmt.Errorf("no handshake within connect_timeout (%s)", d)
}

// again makes the second attempt that some failures deserve: a server that exits when it is asked which era it speaks
// is started once more with initialize first, also one that was modern before, and an era that was remembered wrongly is
// looked for again.
func (u *Upstream) again(ctx context.Context, e *env, known *wire.Era, err error) (conn, *Peer, error) {
	var refused *refusedError
	switch {
	case errors.Is(err, errDiedInProbe):
		legacy := wire.Legacy
		return u.attempt(ctx, e, &legacy)
	case known != nil && u.cfg.Protocol == config.ProtocolAuto && (errors.Is(err, errUseLegacy) || errors.As(err, &refused)):
		u.forgetEra()
		return u.attempt(ctx, e, nil)
	}
	return nil, nil, err
}

// errDiedInProbe means that a child ended before it had answered the probe.
var errDiedInProbe = errors.New("the server ended when it was asked for its era")

// attempt makes one connection and does the handshake on it.
func (u *Upstream) attempt(ctx context.Context, e *env, known *wire.Era) (conn, *Peer, error) {
	c, err := u.dial(ctx, e)
	if err != nil {
		return nil, nil, err
	}
	peer, err := u.shaker(c, e).run(ctx, known)
	if err == nil {
		c.opened()
		return c, peer, nil
	}
	if u.asksEra(known) && u.isPipe() && hasEnded(ctx, c, err) {
		err = fmt.Errorf("%w: %w", errDiedInProbe, err)
	}
	if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	c.Close()
	if sse, peer, ok := u.fallBackToSSE(ctx, e, err); ok {
		return sse, peer, nil
	}
	return nil, nil, u.withLastWords(c, err)
}

func (u *Upstream) shaker(c conn, e *env) *handshaker {
	return &handshaker{conn: c, nextID: u.NextID, version: u.version, declares: e.declares}
}

// asksEra says whether the first message of a handshake is one at which old servers exit, while another may be tried.
func (u *Upstream) asksEra(known *wire.Era) bool {
	return u.cfg.Protocol == config.ProtocolAuto && (known == nil || *known == wire.Modern)
}

// endSeen is how long the end of a connection may take to be seen, once an exchange on it has failed.
const endSeen = time.Second

// hasEnded says whether a connection is gone. A failed exchange on it may be seen a moment before its end is.
func hasEnded(ctx context.Context, c conn, err error) bool {
	var lost *Error
	if errors.As(err, &lost) {
		t := time.NewTimer(endSeen)
		defer t.Stop()
		select {
		case <-c.Done():
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return isDone(c)
}

// withLastWords adds the end of a child's stderr to an error that does not tell it yet.
func (u *Upstream) withLastWords(c conn, err error) error {
	ch, ok := c.(*child)
	var pathErr *Error
	if !ok || errors.As(err, &pathErr) {
		return err
	}
	last := ch.proc.Tail().Last(3)
	if len(last) == 0 {
		return err
	}
	var at *stageError
	if errors.As(err, &at) {
		return atStage(at.stage, fmt.Errorf("%w; its last words: %q", at.err, last))
	}
	return fmt.Errorf("%w; its last words: %q", err, last)
}

func isDone(c conn) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

func (u *Upstream) isPipe() bool {
	return u.cfg.Transport == config.TransportStdio || u.cfg.Transport == config.TransportInProcess
}

// dial opens the connection of the configured kind.
func (u *Upstream) dial(ctx context.Context, e *env) (conn, error) {
	switch u.cfg.Transport {
	case config.TransportStdio:
		c, err := startChild(e, u.cfg)
		if err != nil {
			return nil, atStage("start", err)
		}
		return c, nil
	case config.TransportInProcess:
		return startInProcess(e, u.serve), nil
	case config.TransportSSE:
		return u.dialOldSSE(ctx, e)
	}
	if u.speaksSSE.Load() {
		return u.dialOldSSE(ctx, e)
	}
	c, err := newHTTPConn(e, u.cfg, u.rt)
	if err != nil {
		return nil, atStage("start", err)
	}
	c.redo = func(ctx context.Context, c *httpConn) error {
		_, err := u.shaker(c, e).initialize(ctx)
		return err
	}
	return c, nil
}

func (u *Upstream) dialOldSSE(ctx context.Context, e *env) (conn, error) {
	c, err := dialSSE(ctx, e, u.cfg, u.rt)
	if err != nil {
		return nil, atStage("start", err)
	}
	return c, nil
}

// fallBackToSSE tries the older HTTP transport where streamable HTTP is refused and the configuration names no type
// (2025-11-25, transports, "Backwards Compatibility").
func (u *Upstream) fallBackToSSE(ctx context.Context, e *env, err error) (conn, *Peer, bool) {
	var se *statusError
	if u.cfg.Transport != config.TransportHTTP || !errors.As(err, &se) || u.speaksSSE.Load() || ctx.Err() != nil {
		return nil, nil, false
	}
	if !se.maybeOtherFlavour() || !u.cfg.TransportGuessed {
		return nil, nil, false
	}
	c, err := u.dialOldSSE(ctx, e)
	if err != nil {
		return nil, nil, false
	}
	peer, err := u.shaker(c, e).initialize(ctx)
	if err != nil {
		c.Close()
		return nil, nil, false
	}
	u.speaksSSE.Store(true)
	return c, peer, true
}

// maybeOtherFlavour says whether a server that speaks the other one of the two HTTP transports would answer so.
func (e *statusError) maybeOtherFlavour() bool {
	return e.code == http.StatusBadRequest || e.code == http.StatusNotFound || e.code == http.StatusMethodNotAllowed
}

// withOtherFlavour tells, where the flavour of HTTP that the configuration names is refused, how to have the other one.
// Nothing is tried that the configuration does not say.
func (u *Upstream) withOtherFlavour(err error) error {
	var se *statusError
	var at *stageError
	if u.cfg.TransportGuessed || !errors.As(err, &se) || !errors.As(err, &at) || !se.maybeOtherFlavour() {
		return err
	}
	name, typ := "the older HTTP+SSE", config.TransportSSE
	if u.cfg.Transport == config.TransportSSE {
		name, typ = "streamable HTTP", config.TransportHTTP
	}
	return atStage(at.stage, fmt.Errorf("%w; if the server speaks %s, write \"type\": %q or leave the type out", at.err, name, typ))
}
