package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

// Set is all upstreams in the order of the configuration. It is safe for concurrent use.
type Set struct {
	now     atomic.Pointer[members]
	metrics *Metrics
	ctx     context.Context // ends with Stop
	stop    context.CancelFunc
	runs    sync.WaitGroup

	mu       sync.Mutex // orders Replace, the ends of those that retire, and Stop
	stopped  bool
	retiring []*Upstream
	gone     func(id string)
}

// members are the upstreams at one moment. They are immutable.
type members struct {
	all  []*Upstream
	byID map[string]*Upstream
}

func newMembers(all []*Upstream) *members {
	m := &members{all: all, byID: map[string]*Upstream{}}
	for _, u := range all {
		m.byID[u.ID] = u
	}
	return m
}

// NewSet collects upstreams and registers what is seen of them from outside.
func NewSet(all []*Upstream, m *Metrics, reg prometheus.Registerer) *Set {
	s := &Set{metrics: m, gone: func(string) {}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.now.Store(newMembers(all))
	for _, u := range all {
		s.init(u)
	}
	if reg != nil {
		reg.MustRegister(slotCollector{s})
		if process.Measures() && m != nil {
			reg.MustRegister(childCollector{s})
		}
	}
	return s
}

// init makes the series of an upstream.
func (s *Set) init(u *Upstream) {
	s.metrics.init(u.ID)
	u.opts.Count.Upstream(u.ID)
}

// OnGone sets what hears that nothing runs any more for an upstream that was taken out, nor for another of that name, so
// that its series can be deleted. It is called before Start.
func (s *Set) OnGone(f func(id string)) { s.gone = f }

// All gives the upstreams in the order of the configuration.
func (s *Set) All() []*Upstream { return s.now.Load().all }

// Get finds an upstream; nil where there is none of that name.
func (s *Set) Get(id string) *Upstream { return s.now.Load().byID[id] }

// Start begins to connect to all at once, and returns.
func (s *Set) Start() {
	for _, u := range s.All() {
		u.Start()
	}
	s.runs.Go(s.sweep)
}

// Replace puts these upstreams in the place of those that there are. It gives the new ones, which the caller starts, and
// those that are in the set no more, which the caller retires.
func (s *Set) Replace(all []*Upstream) (added, removed []*Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.All()
	for _, u := range all {
		if !slices.Contains(before, u) {
			s.init(u)
			added = append(added, u)
			if s.Get(u.ID) != nil {
				s.metrics.restarted(u.ID, restartReload)
			}
		}
	}
	for _, u := range before {
		if !slices.Contains(all, u) {
			removed = append(removed, u)
		}
	}
	s.now.Store(newMembers(all))
	return added, removed
}

// Retire lets the calls of upstreams that were taken out end, for at most grace, and stops them then. It returns at once.
func (s *Set) Retire(removed []*Upstream, grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range removed {
		if s.stopped {
			return // Stop has ended them
		}
		s.retiring = append(s.retiring, u)
		s.runs.Go(func() {
			u.Retire(s.ctx, grace)
			s.retired(u)
		})
	}
}

// retired forgets an upstream that has ended, and its series where no other has taken its name.
func (s *Set) retired(u *Upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retiring = slices.DeleteFunc(s.retiring, func(o *Upstream) bool { return o == u })
	same := func(o *Upstream) bool { return o.ID == u.ID }
	if s.Get(u.ID) != nil || slices.ContainsFunc(s.retiring, same) {
		return
	}
	s.metrics.forget(u.ID)
	u.opts.Count.Forget(u.ID)
	s.gone(u.ID)
}

// Stop ends all upstreams side by side and waits for them.
func (s *Set) Stop() {
	s.stop()
	s.mu.Lock()
	s.stopped = true
	for _, u := range s.All() {
		s.runs.Go(u.Stop)
	}
	s.mu.Unlock()
	s.runs.Wait()
}

// Kill ends the processes of all upstreams with everything they have started, without any grace. Nothing can be done with
// the set after it.
func (s *Set) Kill() {
	for _, u := range s.everyone() {
		u.kill()
	}
}

// everyone gives the upstreams of the set and those that retire.
func (s *Set) everyone() []*Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.All()), s.retiring...)
}

// Shown gives the upstreams of the set, and after them those that retire with calls under way and whose name no other has
// taken.
func (s *Set) Shown() []*Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.All())
	for _, u := range s.retiring {
		if u.ctx.Err() == nil && !slices.ContainsFunc(all, func(o *Upstream) bool { return o.ID == u.ID }) {
			all = append(all, u)
		}
	}
	return all
}

// sweep ends what nobody uses any more.
func (s *Set) sweep() {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-t.C:
			for _, u := range s.All() {
				u.EndIdleUnits(now)
			}
		}
	}
}

// EndUnit ends the connections of a session that is over, at every upstream.
func (s *Set) EndUnit(key string) {
	for _, u := range s.everyone() {
		u.EndUnit(key)
	}
}
