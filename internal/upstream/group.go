package upstream

import (
	"sync"
	"time"
)

// group runs goroutines that a connection owns. After Stop it starts no more.
type group struct {
	mu      sync.Mutex
	closed  bool
	running int
	wg      sync.WaitGroup
}

// Go runs f, unless the group has been stopped.
func (g *group) Go(f func()) { g.atMost(0, f) }

// Soon runs f unless the group has been stopped or has too much to do: what is sent off anybody's path waits for a
// server to read it, and one that asks without reading must not pile up goroutines.
func (g *group) Soon(f func()) bool { return g.atMost(maxSoon, f) }

// maxSoon bounds what one group may run for Soon.
const maxSoon = 256

func (g *group) atMost(most int, f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || most > 0 && g.running >= most {
		return false
	}
	g.running++
	g.wg.Go(func() {
		defer g.done()
		f()
	})
	return true
}

func (g *group) done() {
	g.mu.Lock()
	g.running--
	g.mu.Unlock()
}

// Finish lets nothing more begin and waits a while for what runs.
func (g *group) Finish(limit time.Duration) {
	done := make(chan struct{})
	go func() {
		g.Stop()
		close(done)
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// Stop waits for what runs and lets nothing more begin.
func (g *group) Stop() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.wg.Wait()
}
