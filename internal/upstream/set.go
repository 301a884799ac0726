package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Set is all upstreams in the order of the configuration.
type Set struct {
	all  []*Upstream
	byID map[string]*Upstream
	stop context.CancelFunc
	runs sync.WaitGroup
}

// NewSet collects upstreams and registers what is seen of them from outside.
func NewSet(all []*Upstream, m *Metrics, reg prometheus.Registerer) *Set {
	s := &Set{all: all, byID: map[string]*Upstream{}, stop: func() {}}
	for _, u := range all {
		s.byID[u.ID] = u
		m.init(u.ID)
		u.opts.Count.Upstream(u.ID)
	}
	if reg != nil {
		reg.MustRegister(slotCollector{s})
	}
	return s
}

// All gives the upstreams in the order of the configuration.
func (s *Set) All() []*Upstream { return s.all }

// Get finds an upstream; nil where there is none of that name.
func (s *Set) Get(id string) *Upstream { return s.byID[id] }

// Start begins to connect to all at once, and returns.
func (s *Set) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	for _, u := range s.all {
		u.Start()
	}
	s.runs.Go(func() { s.sweep(ctx) })
}

// Stop ends all upstreams side by side and waits for them.
func (s *Set) Stop() {
	s.stop()
	for _, u := range s.all {
		s.runs.Go(u.Stop)
	}
	s.runs.Wait()
}

// sweep ends what nobody uses any more.
func (s *Set) sweep(ctx context.Context) {
	t := time.NewTicker(time.Minute)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			for _, u := range s.all {
				u.EndIdleUnits(now)
			}
		}
	}
}

// EndUnit ends the connections of a session that is over, at every upstream.
func (s *Set) EndUnit(key string) {
	for _, u := range s.all {
		u.EndUnit(key)
	}
}
