package upstream

import (
	"context"
	"fmt"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// With prewarm one connection is ready beside those in use, so that a new session, or a call while all others are busy,
// does not wait for a start. It is made when one is taken, never on a timer: a server that cannot be reached is not
// started again and again for nobody.

// newKeyed begins a slot for a unit, which declares what its client can do. u.mu is held.
func (u *Upstream) newKeyed(name, declares string, creds *Credentials) *slot {
	s := newSlot(u, name, len(u.keyed)+1)
	s.declares, s.creds, s.started = declares, creds, true
	ctx, cancel := context.WithCancel(u.ctx)
	s.stop = cancel
	u.runs.Go(func() { s.run(ctx) })
	return s
}

// makeSpare begins the slot that the next unit gets. u.mu is held.
func (u *Upstream) makeSpare() {
	if !u.cfg.Prewarm || u.cfg.Sharing != config.SharingSession || u.spare != nil || u.ctx.Err() != nil {
		return
	}
	u.spare = u.newKeyed(fmt.Sprintf("spare/%d", u.NextID()), "", nil)
	u.spare.key = ""
}

// takeSpare gives the slot that waits for a unit, if it is of use. u.mu is held.
func (u *Upstream) takeSpare() *slot {
	s := u.spare
	if s == nil || s.conn == nil && s.state != StateConnecting || s.conn != nil && s.conn.Err() != nil {
		return nil
	}
	u.spare = nil
	return s
}

// drop takes the slot of a unit out of reach. u.mu is held.
func (u *Upstream) drop(s *slot) {
	if u.spare == s {
		u.spare = nil
	}
	if s.key != "" && u.keyed[s.key] == s {
		delete(u.keyed, s.key)
	}
	u.forgetWishes(s.key) // also when it ends for good: until then what listens on it may have asked for them again
}

// warmFirst makes the first connection beside the one that lists, once that shows that the server can be reached.
func (u *Upstream) warmFirst() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.makeSpare()
}

// warmShared makes sure that one of the connections that serve one call at a time is free, or will be soon. u.mu is held.
func (u *Upstream) warmShared() {
	var next *slot
	for _, s := range u.shared {
		switch {
		case s.state == StateIdle || !s.started:
			if next == nil {
				next = s
			}
		case s.inflight == 0 && (s.conn != nil || s.state == StateConnecting):
			return
		}
	}
	switch {
	case next == nil:
	case next.state == StateIdle:
		u.wake(next)
	default:
		u.startSlot(next)
	}
}
