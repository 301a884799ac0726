package upstream

import (
	"context"
	"sync"
	"time"
)

// settleTime is how long an upstream that was taken out is kept at least: a call may have been routed to it a moment ago
// and not have its connection yet.
const settleTime = 250 * time.Millisecond

// Retire waits until no call uses the upstream, for at most grace or until ctx ends, and stops it. No new calls may be
// routed to it.
func (u *Upstream) Retire(ctx context.Context, grace time.Duration) {
	defer u.Stop()
	u.mu.Lock()
	u.retiring = true
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	settled := time.NewTimer(min(settleTime, grace))
	defer settled.Stop()
	select {
	case <-settled.C:
	case <-ctx.Done():
	}
	u.use.wait(ctx)
}

// use counts who uses an upstream for a call, waiting for a connection included.
type use struct {
	mu    sync.Mutex
	users int
	idle  chan struct{} // closed when the last one leaves, where somebody waits for it
}

func (u *use) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users++
}

func (u *use) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users--
	if u.users == 0 && u.idle != nil {
		close(u.idle)
		u.idle = nil
	}
}

// wait waits until there are no users or ctx ends.
func (u *use) wait(ctx context.Context) {
	for {
		u.mu.Lock()
		if u.users == 0 {
			u.mu.Unlock()
			return
		}
		if u.idle == nil {
			u.idle = make(chan struct{})
		}
		idle := u.idle
		u.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

// kill ends the process groups of all children.
func (u *Upstream) kill() { u.brood.Kill() }
