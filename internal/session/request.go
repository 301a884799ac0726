package session

import (
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// standingState is what a legacy conversation keeps from one request to the next: the level of log messages and the
// resources it watches. It is safe for concurrent use.
type standingState struct {
	mu    sync.Mutex
	level string
	subs  *proxy.Subscriptions
}

// request makes the request of a legacy client for the proxy room.
func (t *standingState) request(p *proxy.Proxy, caller *proxy.Caller, unread *news, f *wire.Frame, sink proxy.Sink) *proxy.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs == nil {
		t.subs = p.NewSubscriptions(unread.addUpdate)
		t.subs.HearTasks(unread.addTask)
		t.subs.HearLists(unread.add)
	}
	return &proxy.Request{Caller: t.leveled(caller), Frame: f, Sink: sink, Subscriptions: t.subs, SetLogLevel: t.setLevel}
}

// leveled is the caller with the level of log messages that it has asked for. t.mu is held.
func (t *standingState) leveled(caller *proxy.Caller) *proxy.Caller {
	if t.level == "" {
		return caller
	}
	with := *caller
	with.LogLevel = t.level
	return &with
}

// with gives the caller as it is at any later time.
func (t *standingState) with(caller *proxy.Caller) func() *proxy.Caller {
	return func() *proxy.Caller {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.leveled(caller)
	}
}

func (t *standingState) setLevel(level string) {
	t.mu.Lock()
	t.level = level
	t.mu.Unlock()
}

// ownLists says whether the client is told of changes of its lists by itself.
func (t *standingState) ownLists() bool {
	t.mu.Lock()
	subs := t.subs
	t.mu.Unlock()
	return subs != nil && subs.Own()
}

// close ends the subscriptions.
func (t *standingState) close() {
	t.mu.Lock()
	subs := t.subs
	t.mu.Unlock()
	if subs != nil {
		subs.Close()
	}
}
