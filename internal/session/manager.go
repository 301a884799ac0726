package session

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Options are what the conversations need from outside.
type Options struct {
	Proxy    *proxy.Proxy
	Limits   config.Limits
	Sessions config.Sessions
	// StreamAfter is how long a request may be unanswered before its response becomes a stream.
	StreamAfter time.Duration
	// KeepAlive is the interval of comments on open streams.
	KeepAlive time.Duration
	Log       *zap.Logger
	Count     *count.Counters
	Registry  prometheus.Registerer
	// Keys seal the ids of sessions: the first makes them, all open them. Without any, no other process knows ours.
	Keys [][]byte
	// Memory keeps which sessions were ended over a restart; nil keeps nothing.
	Memory Memory
	// Ended is told the unit of a session whose live state is dropped. The unit may come back: the session may not be over.
	Ended func(unit string)
}

// Manager keeps all conversations. It is safe for concurrent use.
type Manager struct {
	opt    Options
	proxy  *proxy.Proxy
	log    *zap.Logger
	count  *count.Counters
	limits wire.Limits

	// base is the parent of all calls: they do not end with an HTTP request, but with a cause.
	base   context.Context
	cancel context.CancelCauseFunc

	draining atomic.Bool
	drained  chan struct{} // closed when draining begins
	calls    sync.WaitGroup
	callsMu  sync.Mutex // orders the beginning of calls and the wait for their end
	closed   bool
	streams  atomic.Int64
	open     [streamKinds]atomic.Int64
	bounds   atomic.Pointer[config.Limits]

	seal    *sealer
	shelf   *shelf
	revoked *revoked
	metrics *metrics

	mu       sync.Mutex
	sessions map[string]*session
	parties  map[string]party         // live conversations, by the name that upstreams know them by
	leaving  map[string]chan struct{} // by id, until upstreams have been told that the session's state is dropped
	listens  map[*listen]struct{}

	runs sync.WaitGroup
	stop context.CancelFunc
}

// New makes a manager that keeps no time yet.
func New(o Options) (*Manager, error) {
	seal, err := newSealer(o.Keys)
	if err != nil {
		return nil, err
	}
	m := &Manager{opt: o, proxy: o.Proxy, log: o.Log, count: o.Count, limits: wire.Limits{MaxDepth: o.Limits.MaxDepth},
		drained: make(chan struct{}), seal: seal, revoked: newRevoked(o.Memory, o.Count, o.Log), metrics: newMetrics(o.Registry), shelf: newShelf(o.Sessions, o.Limits, o.Count),
		sessions: map[string]*session{}, parties: map[string]party{}, leaving: map[string]chan struct{}{}, listens: map[*listen]struct{}{}, stop: func() {}}
	if m.opt.Ended == nil {
		m.opt.Ended = func(string) {}
	}
	m.SetLimits(o.Limits)
	m.base, m.cancel = context.WithCancelCause(context.Background())
	o.Registry.MustRegister(collector{m})
	o.Proxy.OnChange(m.changed)
	o.Proxy.OnAside(m.party)
	return m, nil
}

// Start begins to drop what is over: the state of sessions that are idle or too old.
func (m *Manager) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	m.runs.Go(func() { m.revoked.run(ctx) })
	m.runs.Go(func() {
		t := time.NewTicker(min(m.opt.Sessions.IdleTimeout/4+time.Second, time.Minute))
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				m.sweep(now)
			}
		}
	})
}

// Drain takes no further requests, ends all standing streams properly, and waits for the calls that run until ctx ends.
// Those left then get an answer that says that their outcome is uncertain.
func (m *Manager) Drain(ctx context.Context) {
	if m.draining.CompareAndSwap(false, true) {
		close(m.drained)
	}
	m.callsMu.Lock()
	m.closed = true
	m.callsMu.Unlock()
	done := make(chan struct{})
	go func() {
		m.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		m.cancel(proxy.CauseShutdown)
		<-done
	}
}

// SetLimits bounds the sessions and streams that are opened from now on. What is open stays so.
func (m *Manager) SetLimits(l config.Limits) { m.bounds.Store(&l) }

// Draining says whether Drain has been called.
func (m *Manager) Draining() bool { return m.draining.Load() }

// Stop ends what Start began. It is called after Drain.
func (m *Manager) Stop() {
	m.cancel(proxy.CauseShutdown)
	m.stop()
	m.runs.Wait()
	m.shelf.stop()
}

// begin counts a call that Drain has to wait for; false where it is too late for one.
func (m *Manager) begin() bool {
	m.callsMu.Lock()
	defer m.callsMu.Unlock()
	if m.closed {
		return false
	}
	m.calls.Add(1)
	return true
}

// changed tells everybody whose view has changed.
func (m *Manager) changed(view string, c proxy.Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sessions {
		if s.view == view && !c.Unseen && !s.state.ownLists() {
			s.news(c)
		}
	}
	for l := range m.listens {
		if l.view == view && !l.subs.Own() && (!c.Unseen || l.want.Unseen) {
			l.news.add(c)
		}
	}
}

// Count gives the number of live legacy sessions.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}
