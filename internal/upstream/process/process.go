// Package process starts the programs that the configuration names and ends them with all that they start: each in a
// process group of its own, with an environment of its own, within its limits, its stderr drained, seen by who measures
// and on record for the proxy that comes after a crash. What is said over stdin and stdout is the business of the caller.
package process

import (
	"sync"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// Home is what the children of one upstream share.
type Home struct {
	Upstream string // its id
	Log      *zap.Logger
	Count    *count.Counters
	Mask     Mask
	Brood    *Brood // nil where nobody ends all children at once
	Ledger   Ledger // nil where children are not recorded
	Usage    *Usage // nil where what children use is not kept
}

// Mask hides what is secret in texts that people read.
type Mask interface {
	// Clip gives the first bytes of a text, at most so many, without a part of a secret.
	Clip(text string, most int) string
	// Reach is how far a text must be known beyond the end of what is shown of it.
	Reach() int
}

// Brood is the children of one upstream that live. Its zero value is none.
type Brood struct {
	mu    sync.Mutex
	alive map[*Child]struct{}
	ended bool
}

// add notes a child; one that is started while all are killed goes with them.
func (b *Brood) add(c *Child) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.alive == nil {
		b.alive = map[*Child]struct{}{}
	}
	b.alive[c] = struct{}{}
	if b.ended {
		c.Kill()
	}
}

func (b *Brood) remove(c *Child) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.alive, c)
}

// Kill ends the process groups of all children, and of those that are started later.
func (b *Brood) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for c := range b.alive {
		c.Kill()
	}
}
