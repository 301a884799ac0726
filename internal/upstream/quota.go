package upstream

import (
	"errors"
	"sync"
)

var (
	errSlotsTaken     = errors.New("all connections that sessions may have for themselves are taken (limits.max_slots)")
	errOwnSlotsTaken  = errors.New("this client already has as many connections of its own as it may (limits.max_slots_per_principal)")
	errUpstreamsTaken = errors.New("all connections of this upstream are taken by other sessions (instances)")
)

// Quota bounds the connections that sessions and principals have for themselves, over all upstreams. A nil *Quota bounds
// nothing.
type Quota struct {
	total, each int

	mu   sync.Mutex
	used int
	by   map[string]int // principal
}

// NewQuota makes a quota of so many connections in all, and for each principal.
func NewQuota(total, each int) *Quota { return &Quota{total: total, each: each, by: map[string]int{}} }

func (q *Quota) take(principal string) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.used >= q.total:
		return errSlotsTaken
	case q.by[principal] >= q.each:
		return errOwnSlotsTaken
	}
	q.used++
	q.by[principal]++
	return nil
}

func (q *Quota) give(principal string) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used--
	if q.by[principal]--; q.by[principal] == 0 {
		delete(q.by, principal)
	}
}
