package proxy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// A call whose connection is lost may have been carried out. It is made again only where that can do no harm, and once:
// what only reads, what its trusted annotations allow, and what provably never left.

// replayPatience is how long a call waits for a connection on which it is made again.
const replayPatience = 5 * time.Second

// mayRepeat says whether a call that failed like this may be made again.
func (c *call) mayRepeat(err error) bool {
	var lost *upstream.Error
	if c.repeated || c.ctx.Err() != nil || !errors.As(err, &lost) {
		return false
	}
	cfg := c.item.Upstream.Config()
	switch lost.Reason {
	case upstream.ReasonUnavailable:
		// A child that died while it was idle is found out by the first write. An HTTP server that cannot be reached is
		// down, and said to be.
		return cfg.Transport == config.TransportStdio && errors.Is(err, upstream.ErrNeverSent)
	case upstream.ReasonUncertain:
		if cfg.Replay == config.ReplayNever {
			return false
		}
		if c.method != "tools/call" {
			return true
		}
		return cfg.TrustAnnotations && (c.item.offer.readOnly || c.item.offer.idempotent)
	}
	return false
}

// again readies a call to be made again; where that is not possible, what it was lost by is the error.
func (c *call) again() error {
	lost := c.lost
	c.lost = nil
	if err := c.reacquire(); err != nil {
		return lost
	}
	return nil
}

// reacquire takes another lease for a call that is made again. An upstream that is being restarted is waited for, for a
// moment.
func (c *call) reacquire() error {
	c.repeated = true
	c.p.log.Info("a call is made again after its connection was lost", zap.String("upstream", c.up), zap.String("target", c.item.Wire), zap.String("request_id", c.requestID()))
	c.lease.Release()
	c.lease = nil
	deadline := time.Now().Add(replayPatience)
	for {
		lease, err := c.item.Upstream.Acquire(c.ctx, c.unit())
		if err == nil {
			c.lease, c.peer = lease, lease.Peer()
			c.clock.alive()
			return nil
		}
		var down *upstream.Error
		if !errors.As(err, &down) || down.Reason != upstream.ReasonUnavailable || time.Now().Add(down.RetryAfter).After(deadline) {
			return err
		}
		sleep(c.ctx, max(down.RetryAfter, 10*time.Millisecond))
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
}
