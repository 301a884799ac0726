package session

import (
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
)

// news are changes of lists that a client has not been told yet. They are bits: however many changes come before
// somebody listens, each list is announced once.
type news struct {
	mu      sync.Mutex
	pending proxy.Changes
	signal  chan struct{} // holds one token while there is something
}

func newNews() *news { return &news{signal: make(chan struct{}, 1)} }

func (n *news) add(c proxy.Changes) {
	n.mu.Lock()
	n.pending.Tools = n.pending.Tools || c.Tools
	n.pending.Prompts = n.pending.Prompts || c.Prompts
	n.pending.Resources = n.pending.Resources || c.Resources
	n.mu.Unlock()
	n.wake()
}

func (n *news) wake() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

// take gives what is pending and forgets it.
func (n *news) take() proxy.Changes {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.pending
	n.pending = proxy.Changes{}
	return c
}

// announcements are the notifications for changes; meta is their _meta, or empty.
func announcements(c proxy.Changes, meta string) (out [][]byte) {
	for _, k := range []struct {
		changed bool
		list    string
	}{{c.Tools, "tools"}, {c.Prompts, "prompts"}, {c.Resources, "resources"}} {
		if k.changed {
			text := `{"jsonrpc":"2.0","method":"notifications/` + k.list + `/list_changed"`
			if meta != "" {
				text += `,"params":{"_meta":` + meta + `}`
			}
			out = append(out, []byte(text+"}"))
		}
	}
	return out
}
