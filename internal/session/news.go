package session

import (
	"slices"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
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
	for _, uri := range c.Updated {
		n.addUpdated(uri)
	}
	for _, t := range c.Tasks {
		n.putTask(t, false)
	}
	n.mu.Unlock()
	n.wake()
}

// maxUpdates bounds the resources whose updates wait to be told; one that is told too late is told for the others too.
const maxUpdates = 1000

// addUpdate notes that a resource that the client watches has been updated.
func (n *news) addUpdate(uri string) {
	n.mu.Lock()
	n.addUpdated(uri)
	n.mu.Unlock()
	n.wake()
}

// addUpdated is addUpdate with n.mu held.
func (n *news) addUpdated(uri string) {
	if !slices.Contains(n.pending.Updated, uri) && len(n.pending.Updated) < maxUpdates {
		n.pending.Updated = append(n.pending.Updated, uri)
	}
}

// addTask notes news of a task. What came before of the same kind is of no interest any more.
func (n *news) addTask(t proxy.TaskNews) {
	n.mu.Lock()
	n.putTask(t, true)
	n.mu.Unlock()
	n.wake()
}

// putTask is addTask with n.mu held; newer says that it is newer than what is pending.
func (n *news) putTask(t proxy.TaskNews, newer bool) {
	at := slices.IndexFunc(n.pending.Tasks, func(o proxy.TaskNews) bool { return o.Key == t.Key })
	switch {
	case at < 0 && len(n.pending.Tasks) < maxTaskNews:
		n.pending.Tasks = append(n.pending.Tasks, t)
	case at >= 0 && newer:
		n.pending.Tasks[at] = t
	}
}

// maxTaskNews bounds the tasks whose news wait to be told; whoever misses some asks.
const maxTaskNews = 100

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
	for _, uri := range c.Updated {
		b := wire.AppendString([]byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`), uri)
		if meta != "" {
			b = append(b, `,"_meta":`+meta...)
		}
		out = append(out, append(b, "}}"...))
	}
	for _, t := range c.Tasks {
		out = append(out, withMeta(t.Frame, meta))
	}
	return out
}

// withMeta adds the member of a subscription's _meta to a notification, which may have others; meta is empty for none.
func withMeta(frame []byte, meta string) []byte {
	f, err := wire.Parse(frame, wire.Upstream, wire.Limits{MaxDepth: 10_000})
	if meta == "" || err != nil {
		return frame
	}
	var p wire.Patch
	p.Reset(f.Raw)
	if !f.Meta.Ok() {
		p.Insert(&f.Body, "_meta", []byte(meta))
		return p.Append(nil)
	}
	added, _ := wire.ObjectAt([]byte(meta), wire.Span{End: len(meta)})
	for _, m := range added.Members {
		name, _ := wire.DecodeString(m.Key.Of([]byte(meta)))
		p.Insert(&f.Meta, name, m.Value.Of([]byte(meta)))
	}
	return p.Append(nil)
}
