package upstream

import (
	"maps"
	"slices"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

// Status is what an upstream looks like from outside at one moment.
type Status struct {
	// Up says that calls are taken: there is a connection, or one is made for the next call.
	Up    bool
	State Health
	Slots map[State]int
	Peer  *Peer
	// Failure is the last thing that went wrong, also when all is well again.
	Failure   *Failure
	NextRetry time.Time // zero where no try is planned
	Failures  int       // in a row
	Stderr    []string
	Unclear   int64 // requests of the server that were refused because several calls share its connection
}

// HintSharing is what helps a server whose questions belong to nobody.
const HintSharing = `give its entry "sharing": "session", so that each session has a connection of its own`

// Status tells the state of the upstream.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	st := Status{Slots: map[State]int{}, Failure: u.failure, Unclear: u.unclear.Load()}
	f := facts{stopped: u.ctx.Err() != nil, retiring: u.retiring, mistaken: u.cfg.Problem != nil, listsBroken: u.listFailure != nil}
	for _, s := range u.shared {
		if !s.started && u.cfg.Problem == nil && s.index > 0 {
			continue // made when it is needed
		}
		f.note(s)
		s.countIn(st.Slots)
		if s.peer != nil && st.Peer == nil {
			st.Peer = s.peer
		}
		if s.state == StateFailed && s.retry.After(now) && (st.NextRetry.IsZero() || s.retry.Before(st.NextRetry)) {
			st.NextRetry = s.retry
		}
		if c, ok := s.conn.(*child); ok {
			st.Stderr = c.proc.Tail().Last(process.KeptLines)
		}
	}
	if u.spoken != nil {
		st.Stderr = u.spoken.Last(process.KeptLines)
	}
	for _, s := range u.owned() {
		s.countIn(st.Slots)
	}
	if st.Peer == nil {
		st.Peer = u.remembered
	}
	st.State, st.Failures = f.health(), f.failures
	st.Up = !f.stopped && !f.mistaken && (f.connected > 0 || f.idle || f.waking)
	if st.Up && u.listFailure != nil {
		st.Failure = u.listFailure
	}
	if f.mistaken {
		st.Slots = map[State]int{}
	}
	return st
}

// countIn counts the slot under its state; one that rests is no connection. u.mu is held.
func (s *slot) countIn(slots map[State]int) {
	switch {
	case s.state == StateIdle:
	case s.state == StateReady && s.inflight > 0:
		slots[StateBusy]++
	default:
		slots[s.state]++
	}
}

// owned gives the slots of units, and the one that waits for its unit. u.mu is held.
func (u *Upstream) owned() []*slot {
	own := slices.Collect(maps.Values(u.keyed))
	if u.spare != nil {
		own = append(own, u.spare)
	}
	return own
}
