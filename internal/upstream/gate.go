package upstream

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// gate lets a bounded number of calls through at a time; a bounded number waits for them, in the order they came. A gate
// without a limit lets everybody through.
type gate struct {
	limit, queue int
	patience     time.Duration // how long a call may wait

	mu      sync.Mutex
	running int
	waiting list.List // of chan struct{}, closed when it is that one's turn
}

var (
	errQueueFull = errors.New("the queue is full")
	errQueueLong = errors.New("the turn did not come in time")
)

// enter waits for its turn.
func (g *gate) enter(ctx context.Context) error {
	if g.limit == 0 {
		return nil
	}
	g.mu.Lock()
	if g.running < g.limit && g.waiting.Len() == 0 {
		g.running++
		g.mu.Unlock()
		return nil
	}
	if g.waiting.Len() >= g.queue {
		g.mu.Unlock()
		return fmt.Errorf("%w: %d calls run and %d wait (max_concurrency, max_queue)", errQueueFull, g.limit, g.queue)
	}
	turn := make(chan struct{})
	place := g.waiting.PushBack(turn)
	g.mu.Unlock()
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = fmt.Errorf("%w: %s in the queue (max_concurrency)", errQueueLong, g.patience)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn: // it came at the same moment; it is given on
		g.next()
	default:
		g.waiting.Remove(place)
	}
	return err
}

// leave ends a call that was let through.
func (g *gate) leave() {
	if g.limit == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

// next gives a place to who waits for longest. g.mu is held.
func (g *gate) next() {
	if first := g.waiting.Front(); first != nil {
		close(g.waiting.Remove(first).(chan struct{}))
		return
	}
	g.running--
}
