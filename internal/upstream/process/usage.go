package process

import (
	"os"
	"sync"
	"time"
)

// Usage keeps what children have used of the processor, so that the sum of an upstream never goes back: not when a process
// is replaced, nor when one below a child ends without its parent waiting for it. A nil *Usage keeps nothing.
type Usage struct {
	mu    sync.Mutex
	ended map[string]time.Duration // of children that have ended, by upstream
	live  map[*Child]time.Duration // the most that was seen of each
}

// NewUsage keeps nothing yet.
func NewUsage() *Usage {
	return &Usage{ended: map[string]time.Duration{}, live: map[*Child]time.Duration{}}
}

func (g *Usage) begin(c *Child) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[c] = 0
}

// end closes the account of a child that has been reaped. Its status holds what it has used, with all processes below it
// that have been waited for, also where nobody has ever looked.
func (g *Usage) end(c *Child, state *os.ProcessState) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	most, known := g.live[c]
	if !known {
		return
	}
	if state != nil {
		most = max(most, state.UserTime()+state.SystemTime())
	}
	g.ended[c.home.Upstream] += most
	delete(g.live, c)
}

// see notes what a living child and its processes were seen to have used.
func (g *Usage) see(c *Child, used time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if most, known := g.live[c]; known {
		g.live[c] = max(most, used)
	}
}

// Totals gives what the children of each upstream have used, those that have ended included.
func (g *Usage) Totals() map[string]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]time.Duration{}
	for id, d := range g.ended {
		out[id] += d
	}
	for c, d := range g.live {
		out[c.home.Upstream] += d
	}
	return out
}

// children gives those that live.
func (g *Usage) children() (all []*Child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.live {
		all = append(all, c)
	}
	return all
}

// Forget forgets what the children of an upstream have used that have ended.
func (g *Usage) Forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ended, id)
}

// Load is what processes use at one moment.
type Load struct {
	Processes, Files int   // files are the open descriptors
	Memory           int64 // resident bytes
	cpu              time.Duration
}

// Look looks at the processes of all children and gives what those of each upstream use. A process belongs to a child if it
// is below it or in its group.
func (g *Usage) Look() map[string]Load {
	sums := map[string]Load{}
	for of, l := range loads(g.children()) {
		g.see(of, l.cpu)
		s := sums[of.home.Upstream]
		s.Processes, s.Files, s.Memory = s.Processes+l.Processes, s.Files+l.Files, s.Memory+l.Memory
		sums[of.home.Upstream] = s
	}
	return sums
}
