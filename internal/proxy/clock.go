package proxy

import (
	"sync"
	"time"
)

// clock measures how long a call has been without a sign of life. While the upstream waits for a person it stands still.
// It is safe for concurrent use.
type clock struct {
	mu    sync.Mutex
	timer *time.Timer
	limit time.Duration
	held  int // questions that wait for a person
	over  bool
}

func (k *clock) start(limit time.Duration, expired func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limit = limit
	k.timer = time.AfterFunc(limit, expired)
}

// alive begins the wait anew.
func (k *clock) alive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held == 0 && !k.over {
		k.timer.Reset(k.limit)
	}
}

// hold stops the clock until as many calls of free have come.
func (k *clock) hold() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held++
	k.timer.Stop()
}

func (k *clock) free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held--; k.held == 0 && !k.over {
		k.timer.Reset(k.limit)
	}
}

// stop ends the measuring for good.
func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.timer != nil {
		k.timer.Stop()
	}
}
