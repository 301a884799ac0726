package upstream

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGateBoundsAndQueuesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{limit: 2, queue: 3, patience: time.Minute}
		var mu sync.Mutex
		var order []int
		running, most := 0, 0
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := g.enter(t.Context()); err != nil {
					t.Errorf("call %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				g.leave()
			})
		}
		time.Sleep(100 * time.Millisecond)
		if err := g.enter(t.Context()); !errors.Is(err, errQueueFull) {
			t.Errorf("the sixth call: %v, want a full queue", err)
		}
		wg.Wait()
		if most != 2 {
			t.Errorf("%d ran at a time", most)
		}
		for i, n := range order {
			if i != n {
				t.Errorf("the order is %v", order)
				break
			}
		}
		if g.running != 0 || g.waiting.Len() != 0 {
			t.Errorf("%d run and %d wait at the end", g.running, g.waiting.Len())
		}
	})
}

func TestGateForgetsWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{limit: 1, queue: 5, patience: time.Second}
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
		if err := g.enter(ctx); !errors.Is(err, gone) {
			t.Errorf("a caller that goes gets %v", err)
		}
		if err := g.enter(t.Context()); !errors.Is(err, errQueueLong) {
			t.Errorf("a caller that waits too long gets %v", err)
		}
		g.leave()
		if err := g.enter(t.Context()); err != nil {
			t.Errorf("the place of those who gave up is not free: %v", err)
		}
		g.leave()
	})
}

func TestGateWithoutLimit(t *testing.T) {
	g := &gate{}
	for range 100 {
		if err := g.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		g.leave()
	}
}
