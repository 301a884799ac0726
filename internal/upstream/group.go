package upstream

import "sync"

// group runs goroutines that a connection owns. After Stop it starts no more.
type group struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// Go runs f, unless the group has been stopped.
func (g *group) Go(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.wg.Go(f)
	}
}

// Stop waits for what runs and lets nothing more begin.
func (g *group) Stop() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}
