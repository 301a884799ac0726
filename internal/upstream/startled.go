package upstream

import (
	"time"

	"go.uber.org/zap"
)

const (
	// cancelSuspicion is how soon after a cancel the end of a process counts as its consequence.
	cancelSuspicion = 2 * time.Second
	// cancelReprieve is how long a server that cancels end is told of none. Its calls that are given up run on unseen, which
	// costs less than the calls of others.
	cancelReprieve = 10 * time.Minute
)

// cancels says whether the server may be told that a call is given up, and notes that it is. Only a process is ever
// spared: some programs end at a notification that they do not know.
func (s *slot) cancels(c conn) bool {
	if _, isChild := c.(*child); !isChild {
		return true
	}
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	now := time.Now()
	if now.Before(s.u.sparedUntil) {
		return false
	}
	s.cancelledAt = now
	return true
}

// startled sees a process end, perhaps of a cancel.
func (s *slot) startled(c conn) {
	if _, isChild := c.(*child); !isChild {
		return
	}
	s.u.mu.Lock()
	now := time.Now()
	guilty := now.Sub(s.cancelledAt) < cancelSuspicion
	if guilty {
		s.u.sparedUntil = now.Add(cancelReprieve)
	}
	s.u.mu.Unlock()
	if guilty {
		s.u.log.Warn("the server ended right after it was told that a call is given up; for a while it is told of no more",
			zap.Duration("while", cancelReprieve))
	}
}
