package upstream

import (
	"maps"
	"slices"
	"time"
)

// Status is what an upstream looks like from outside at one moment.
type Status struct {
	// Up says that calls are taken: there is a connection, or one is made for the next call.
	Up    bool
	State string // connecting, ready, idle, crash-looping, failed
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

// crashLoop is how many failures in a row make a crash loop.
const crashLoop = 3

// Status tells the state of the upstream.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	st := Status{Slots: map[State]int{}, Failure: u.failure, State: string(StateConnecting), Unclear: u.unclear.Load()}
	for _, s := range u.shared {
		if !s.started && u.cfg.Problem == nil && s.index > 0 {
			continue // made when it is needed
		}
		state := s.state
		if state == StateReady && s.inflight > 0 {
			state = StateBusy
		}
		if state != StateIdle {
			st.Slots[state]++
		}
		st.Failures = max(st.Failures, s.failures)
		if s.peer != nil && st.Peer == nil {
			st.Peer = s.peer
		}
		switch {
		case s.conn != nil:
			st.Up, st.State = true, string(StateReady)
		case s.state == StateIdle && st.State != string(StateReady):
			st.Up, st.State = true, string(StateIdle)
		case s.rested:
			st.Up = true // it is being woken
		case s.state == StateFailed && !st.Up:
			st.State, st.NextRetry = string(StateFailed), s.retry
		}
		if c, ok := s.conn.(*child); ok {
			st.Stderr = c.stderr.last(stderrKept)
		}
	}
	own := slices.Collect(maps.Values(u.keyed))
	if u.spare != nil {
		own = append(own, u.spare)
	}
	for _, s := range own {
		state := s.state
		if state == StateReady && s.inflight > 0 {
			state = StateBusy
		}
		st.Slots[state]++
	}
	if st.Peer == nil {
		st.Peer = u.remembered
	}
	if !st.Up && st.Failures >= crashLoop {
		st.State = "crash-looping"
	}
	if u.cfg.Problem != nil {
		st.State, st.Slots = string(StateFailed), map[State]int{}
	}
	return st
}
