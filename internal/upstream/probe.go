package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// probeAnswer is how long a probe waits for its answer.
	probeAnswer = 10 * time.Second
	// probeMisses is how many probes in a row must stay without an answer until the connection counts as dead.
	probeMisses = 3
)

// errUnresponsive means that a connection that nobody used did not answer probes.
var errUnresponsive = errors.New("the server does not answer")

// prober asks a connection that nobody uses whether the server lives. It belongs to the goroutine that watches the connection.
//
// A probe that is not answered says nothing while the server may be busy: with a call, with one that was given up and that it
// may not have heard of yet, with a task. So only probes count that began and ended without any of these; and what a server
// answers does not matter, an error is a sign of life too.
type prober struct {
	s      *slot
	c      conn
	peer   *Peer
	every  time.Duration // 0 for never
	timer  *time.Timer
	due    <-chan time.Time
	result chan probed
	asks   group
	cancel context.CancelFunc
	ctx    context.Context
	misses int
}

// probed is how a probe ended.
type probed struct {
	answered bool
	uses     uint64 // of the slot when the probe began
}

func newProber(ctx context.Context, s *slot, c conn, peer *Peer) *prober {
	p := &prober{s: s, c: c, peer: peer, every: s.u.cfg.ProbeInterval, result: make(chan probed, 1)}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.schedule(p.every)
	return p
}

// stop ends what is under way and waits for it.
func (p *prober) stop() {
	p.cancel()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.asks.Stop()
}

// schedule sets the time of the next probe, with jitter: many servers are started in one moment.
func (p *prober) schedule(d time.Duration) {
	if p.every <= 0 {
		return
	}
	p.timer = time.NewTimer(time.Duration(float64(d) * (0.9 + 0.2*rand.Float64())))
	p.due = p.timer.C
}

// probe asks, unless somebody uses the connection: then its calls tell what there is to know.
func (p *prober) probe() {
	uses, busy := p.s.inUse()
	if busy {
		p.schedule(p.every)
		return
	}
	p.due = nil
	p.asks.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, probeAnswer)
		defer cancel()
		p.result <- probed{p.ask(ctx), uses}
	})
}

// ask sends one request that any server of this era answers, and says whether there was a sign of life.
func (p *prober) ask(ctx context.Context) bool {
	method, params := "ping", "{}"
	h := &handshaker{conn: p.c, nextID: p.s.u.NextID, version: p.s.u.version}
	if p.peer.Era == wire.Modern {
		method, params = "server/discover", h.discoverParams(p.peer.Version)
	}
	_, err := h.askQuietly(ctx, method, params)
	var status *statusError
	return err == nil || errors.As(err, &status)
}

// ended takes the result of a probe. The error is not nil where the connection is of no more use.
func (p *prober) ended(r probed) error {
	if r.answered {
		p.misses = 0
		p.s.heardFrom()
		p.schedule(p.every)
		return nil
	}
	if !p.s.counts(r.uses) {
		p.schedule(p.every)
		return nil
	}
	p.misses++
	p.s.u.log.Warn("the server does not answer a probe", zap.Int("misses", p.misses), zap.Int("of", probeMisses))
	if p.misses >= probeMisses && p.s.giveUp(r.uses) {
		return atStage("run", fmt.Errorf("%w: %d probes in a row were not answered within %s, and nobody was using it", errUnresponsive, p.misses, probeAnswer))
	}
	p.schedule(min(p.every, probeAnswer))
	return nil
}

// inUse counts the uses of the slot so far and says whether there is one now.
func (s *slot) inUse() (uses uint64, busy bool) {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return s.uses, s.inflight > 0
}

// heardFrom notes a sign of life.
func (s *slot) heardFrom() {
	s.set(func() { s.missed, s.abandoned = 0, time.Time{} })
}

// counts says whether a probe that was not answered means anything, and notes it if so.
func (s *slot) counts(uses uint64) bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	working := !s.abandoned.IsZero() && time.Since(s.abandoned) < s.u.cfg.MaxCallTime || len(s.u.wishes.tasks) > 0
	if s.uses != uses || s.inflight > 0 || working {
		return false
	}
	s.missed++
	s.u.broadcast()
	return true
}

// giveUp takes the connection out of reach, unless somebody has begun to use it.
func (s *slot) giveUp(uses uint64) bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	if s.uses != uses || s.inflight > 0 {
		return false
	}
	s.conn, s.state = nil, StateDraining
	s.u.broadcast()
	return true
}
