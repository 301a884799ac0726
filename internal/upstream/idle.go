package upstream

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// errIdle means that a connection was ended because nobody has used it for idle_stop. It is no failure.
var errIdle = errors.New("nobody has used the connection for idle_stop")

// use lets a connection be used until it is lost, ctx ends, nobody has used it for idle_stop or it does not answer; it tells
// which.
func (s *slot) use(ctx context.Context, c conn, peer *Peer) error {
	probes := newProber(ctx, s, c, peer)
	defer probes.stop()
	var check <-chan time.Time
	if d := s.u.cfg.IdleStop; d > 0 {
		check = time.After(d)
	}
	for {
		select {
		case <-c.Done():
			return c.Err()
		case <-ctx.Done():
			return ErrClosed
		case <-probes.due:
			probes.probe()
		case r := <-probes.result:
			if err := probes.ended(r); err != nil {
				return err
			}
		case <-check:
			left := s.rest()
			if left <= 0 {
				return errIdle
			}
			check = time.After(left)
		}
	}
}

// rest takes the connection away from the slot if it has been unused for idle_stop, and else tells how long it may be
// used at least before it is worth looking again. A use that ends after this moment cannot have been over for idle_stop
// by then, so no rest comes late.
func (s *slot) rest() (left time.Duration) {
	u := s.u
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.inflight > 0 || s.hears() {
		return u.cfg.IdleStop
	}
	if left = u.cfg.IdleStop - time.Since(s.lastUse); left > 0 {
		return left
	}
	// With this the slot is out of reach for new calls: one that comes now wakes it, or gets another slot for its unit.
	s.conn, s.state, s.rested, s.wake = nil, StateIdle, true, make(chan struct{})
	s.failures, s.failure, s.upSince = 0, nil, time.Time{}
	if s.unit != "" {
		s.state = StateDraining
		u.drop(s)
	}
	u.broadcast()
	u.log.Info("upstream rests", zap.Duration("idle_stop", u.cfg.IdleStop))
	return 0
}

// hears says whether news come on this slot that somebody waits for. u.mu is held.
func (s *slot) hears() bool {
	w := s.wishes()
	return w != nil && !w.none()
}

// sleep waits until a call wants the slot again; false where it is over for good. The slot of a unit does not come back:
// what the server knew of the unit is gone, and the unit's next call makes another.
func (s *slot) sleep(ctx context.Context) bool {
	if s.unit != "" {
		return false
	}
	s.u.mu.Lock()
	woken := s.wake
	s.u.mu.Unlock()
	select {
	case <-woken:
		return true
	case <-ctx.Done():
		return false
	}
}

// wake lets an idle slot connect. u.mu is held, so only one of the calls that find the slot idle does it.
func (u *Upstream) wake(s *slot) {
	s.state = StateConnecting
	if s.started {
		close(s.wake)
	} else {
		u.startSlot(s)
	}
	u.broadcast()
}

// heard notes a change of what the first slot is to hear, which is a use of it. u.mu is held.
func (u *Upstream) heard(wanted int) {
	s := u.shared[0]
	s.lastUse = time.Now()
	if wanted > 0 && s.state == StateIdle {
		u.wake(s)
	}
}

// Idle says that the upstream has no connection because nobody needs one; the next call makes one.
func (u *Upstream) Idle() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	idle := false
	for _, s := range u.shared {
		switch {
		case s.conn != nil:
			return false
		case s.state == StateIdle:
			idle = true
		}
	}
	return idle
}
