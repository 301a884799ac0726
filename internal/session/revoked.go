package session

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// Memory keeps the sessions that were ended before their time over a restart, each with its expiry in Unix seconds.
type Memory interface {
	Revoked() map[string]int64
	SetRevoked(map[string]int64) error
}

const (
	// maxRevoked bounds the sessions that are remembered as ended; over it the ones that expire first are forgotten.
	maxRevoked = 20_000
	// revokedPause is the least time between two writes of the list.
	revokedPause = time.Second
)

// revoked are the sessions that were ended with DELETE and whose ids would open still. It is an orderly end for clients
// and not a wall: the list is bounded, and a crash may lose the last second of it.
type revoked struct {
	memory Memory // nil keeps nothing
	count  *count.Counters
	log    *zap.Logger
	dirty  chan struct{} // holds a token while the list differs from what is kept

	mu    sync.Mutex
	until map[uniqueID]int64
}

func newRevoked(memory Memory, c *count.Counters, log *zap.Logger) *revoked {
	r := &revoked{memory: memory, count: c, log: log, dirty: make(chan struct{}, 1), until: map[uniqueID]int64{}}
	if memory == nil {
		return r
	}
	now := time.Now().Unix()
	for text, until := range memory.Revoked() {
		if u, ok := parseUnique(text); ok && until > now && len(r.until) < maxRevoked {
			r.until[u] = until
		}
	}
	return r
}

// add remembers that a session is over.
func (r *revoked) add(u uniqueID, expires time.Time) {
	r.mu.Lock()
	if len(r.until) >= maxRevoked {
		r.makeRoom(time.Now().Unix())
	}
	r.until[u] = expires.Unix()
	r.mu.Unlock()
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// makeRoom forgets what has expired, or else a tenth of all: the ones that expire first. r.mu is held.
func (r *revoked) makeRoom(now int64) {
	maps.DeleteFunc(r.until, func(_ uniqueID, until int64) bool { return until <= now })
	if len(r.until) < maxRevoked {
		return
	}
	r.count.Limit(count.LimitRevoked)
	all := slices.SortedFunc(maps.Keys(r.until), func(a, b uniqueID) int { return cmp.Compare(r.until[a], r.until[b]) })
	for _, u := range all[:maxRevoked/10] {
		delete(r.until, u)
	}
}

// parseUnique reads what uniqueID.text has written.
func parseUnique(text string) (u uniqueID, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(u) {
		return u, false
	}
	copy(u[:], b)
	return u, true
}

func (r *revoked) has(u uniqueID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.until[u]
	return ok
}

// run writes the list whenever it has changed, until ctx ends; then it writes what is left.
func (r *revoked) run(ctx context.Context) {
	if r.memory == nil {
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			r.writeIfDirty()
			return
		}
		select {
		case <-r.dirty:
			r.write()
		case <-ctx.Done():
			r.writeIfDirty()
			return
		}
		pause.Reset(revokedPause)
	}
}

func (r *revoked) writeIfDirty() {
	select {
	case <-r.dirty:
		r.write()
	default:
	}
}

func (r *revoked) write() {
	now := time.Now().Unix()
	r.mu.Lock()
	all := make(map[string]int64, len(r.until))
	for u, until := range r.until {
		if until > now {
			all[u.text()] = until
		}
	}
	r.mu.Unlock()
	if err := r.memory.SetRevoked(all); err != nil {
		r.log.Warn("the list of ended sessions could not be kept; after a restart they can be used again", zap.Error(err))
	}
}
