package upstream

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// State is the state of a slot; the word stands in metrics and status.
type State string

// The states of a slot.
const (
	StateConnecting State = "connecting"
	StateReady      State = "ready"
	StateBusy       State = "busy" // ready, with calls under way
	StateDraining   State = "draining"
	StateFailed     State = "failed"
	StateIdle       State = "idle" // without a connection, until a call wants one
)

// slot is the place of one live connection. One goroutine, run, makes the connection, watches it and makes the next.
// The fields below are guarded by the upstream's mutex.
type slot struct {
	u     *Upstream
	unit  string // not empty where it is the slot of one unit; whose is in key
	index int

	state     State
	conn      conn
	peer      *Peer
	inflight  int
	failures  int // in a row, without sustained uptime between
	failure   error
	retry     time.Time
	upSince   time.Time
	started   bool // of a shared slot: it has been begun to be connected
	ended     bool
	stop      context.CancelFunc // of a slot with a unit
	key       string             // the unit; empty for everybody's, and for one that waits for its unit
	owner     string             // the sharing unit alone, without its credentials
	creds     *Credentials       // that the connection is bound to; nil for none. Set once
	principal string             // that a slot with a unit is counted for
	counted   bool
	ends      bool // the unit has an end of its own
	asides    *asides
	declares  string // what a legacy server is told that the unit's client can do; empty for all that we can bring to one
	lastUse   time.Time
	// cancelledAt is when the process was last told that a call is given up.
	cancelledAt time.Time
	// rested says that the connection before was ended for want of use; wake is closed when a call wants the next one.
	rested    bool
	wake      chan struct{}
	uses      uint64    // leases so far
	missed    int       // probes in a row without an answer
	abandoned time.Time // when a call was given up last that the server may still work on; zero after a sign of life
	deaf      bool      // the server refuses to announce some changes on this connection
	// generation names the process that is connected, whose memory ends with it; zero over HTTP.
	generation uint64
}

func newSlot(u *Upstream, unit string, index int) *slot {
	return &slot{u: u, unit: unit, key: unit, index: index, state: StateConnecting, stop: func() {}, lastUse: time.Now()}
}

// run keeps one connection alive until ctx ends. A slot with a unit lives only as long as its first connection: the
// state that it is for would be gone with it.
func (s *slot) run(ctx context.Context) {
	defer s.end()
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if attempt > 0 {
			s.u.opts.Metrics.restarted(s.u.ID, s.restartReason())
			s.set(func() { s.state = StateConnecting })
		}
		err := s.live(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errIdle) {
			if !s.sleep(ctx) {
				return
			}
			continue
		}
		delay := s.failed(err)
		s.u.firstEnded()
		s.tell()
		if !s.comesBack() {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
	}
}

// comesBack says whether the slot makes another connection after one that failed: the shared ones do, and those on which
// somebody waits for news.
func (s *slot) comesBack() bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return s.unit == "" || s.lists() && s.hears()
}

// mask hides what is secret of the upstream, and of whoever this connection is for.
func (s *slot) mask() *masker {
	if s.creds == nil {
		return s.u.mask
	}
	return newMasker(append(secretValues(s.u.cfg), s.creds.secrets()...)).with(s.u.tokens)
}

// live makes a connection and returns when it is of no more use, with the reason.
func (s *slot) live(ctx context.Context) error {
	e := s.u.env(s)
	e.own = s.unit != "" && !s.manySessions() || s.u.cfg.Sharing == config.SharingCall
	if s.unit != "" {
		e.asides = newAsides(ctx, s)
		s.set(func() { s.asides = e.asides })
		defer e.asides.end()
		e.declares = cmp.Or(s.declares, clientCapabilities)
	}
	c, peer, err := s.u.connect(ctx, e)
	if err != nil {
		return err
	}
	if h, ok := c.(*httpConn); ok {
		h.lost = func() {
			s.u.opts.Metrics.restarted(s.u.ID, restartSessionLost)
			s.restore(h, h.peer.Load())
			s.tell()
		}
	}
	s.u.log.Info("upstream ready", zap.String("era", peer.Era.String()), zap.String("revision", peer.Version), zap.String("server", peer.Name))
	peer.RunsTasks = peer.runsTasks()
	s.set(func() {
		s.conn, s.peer, s.state, s.upSince, s.failure = c, peer, StateReady, time.Now(), nil
		s.generation, s.rested = s.u.newGeneration(), false
		s.missed, s.abandoned, s.deaf = 0, time.Time{}, false
	})
	s.u.firstEnded()
	if s.unit != "" {
		s.u.wakeLister()
	} else {
		s.u.warmFirst()
	}
	s.restore(c, peer)
	s.tell()
	var news group
	if s.hearsNews() && peer.Era == wire.Modern {
		news.Go(func() { s.listen(ctx, c, peer) })
	}
	if err = s.use(ctx, c, peer); !errors.Is(err, errIdle) {
		s.set(func() { s.conn, s.state = nil, StateDraining })
		if ctx.Err() == nil {
			s.startled(c)
		}
	}
	c.Close()
	news.Stop()
	return err
}

// failed notes why there is no connection and gives the time to wait. The delays begin anew only after sustained
// uptime: a handshake that succeeds proves little.
func (s *slot) failed(err error) time.Duration {
	r := s.u.cfg.Restart
	now := time.Now()
	mask := s.mask()
	failure := failureOf(err, now)
	failure.Message = mask.text(failure.Message)
	err = mask.error(err)
	refused := ChallengeOf(err) != nil
	var delay time.Duration
	s.set(func() {
		if !s.upSince.IsZero() && now.Sub(s.upSince) >= r.HealthyAfter {
			s.failures = 0
		} else {
			delay = backoff(r, s.failures)
			s.failures++
		}
		if refused {
			delay = r.MaxDelay // it is there, and will hardly change its mind
		}
		s.upSince = time.Time{}
		s.state, s.failure, s.retry, s.rested = StateFailed, err, now.Add(delay), false
		if !refused || s.unit == "" {
			s.u.failure = failure
		}
	})
	if refused {
		// Whose credential it is matters to nobody but its owner, who is told.
		s.u.log.Info("the server asks callers for a credential", zap.String("error", err.Error()), zap.Bool("sent_one", s.creds != nil))
		return delay
	}
	s.u.log.Warn("upstream down", zap.String("error", err.Error()), zap.Duration("retry_in", delay))
	return delay
}

func backoff(r config.Restart, failures int) time.Duration {
	d := float64(r.InitialDelay)
	for range failures {
		if d *= r.Multiplier; d >= float64(r.MaxDelay) {
			d = float64(r.MaxDelay)
			break
		}
	}
	return time.Duration(d * (0.9 + 0.2*rand.Float64()))
}

func (s *slot) restartReason() string {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	var se *stageError
	switch {
	case s.rested:
		return restartIdle
	case errors.Is(s.failure, errSessionLost):
		return restartSessionLost
	case errors.As(s.failure, &se) && se.stage != "run":
		return restartHandshake
	case s.u.cfg.Transport == config.TransportStdio && !errors.Is(s.failure, errUnresponsive):
		return restartExit
	}
	return restartTransport
}

func (s *slot) end() {
	s.set(func() {
		s.ended = true
		if s.unit != "" {
			s.u.drop(s)
			s.uncount()
		}
	})
	if s.unit != "" && s.u.opts.Own != nil {
		s.u.opts.Own.OwnEnded(s.u, s.whose())
	}
}

// uncount gives back the slot's place among those that units have for themselves. The upstream's mutex is held.
func (s *slot) uncount() {
	if s.counted {
		s.counted = false
		s.u.opts.Quota.give(s.principal)
	}
}

// set changes the slot's fields and tells those who wait for it.
func (s *slot) set(change func()) {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	change()
	s.u.broadcast()
}

func (s *slot) tell() {
	switch {
	case s.unit == "" && s.u.opts.Observer != nil:
		s.u.opts.Observer.Changed(s.u)
	case s.unit != "" && s.u.opts.Own != nil && s.connected():
		s.u.opts.Own.OwnReady(s.u, s.whose())
	}
}

func (s *slot) connected() bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return s.conn != nil
}

// Refused notes that a request of the server was refused because it belongs to no call, or nobody can tell to which.
func (s *slot) Refused(f *wire.Frame, several bool) {
	if several && s.u.cfg.Sharing == config.SharingShared && s.u.unclear.Add(1) == 1 {
		s.u.log.Warn("the server asks a client while several calls share its connection, and nobody can tell which call asks; "+
			"it is refused", zap.String("method", f.Method), zap.String("hint", HintSharing))
	}
	s.u.opts.Count.Drop(count.DropRequest)
	if s.u.opts.Observer != nil {
		s.u.opts.Observer.Refused(s.u, f.Method)
	}
}

// Missed lets the lists be looked at again: nobody tells what was announced while nobody listened.
func (s *slot) Missed() { s.tell() }

// Notification passes on what came outside any call on a connection that everybody shares, and what belongs to a task on
// whatever connection.
func (s *slot) Notification(f *wire.Frame) {
	if isTaskNews(f.Method) {
		s.taskNews(f)
		return
	}
	if s.unit != "" && s.u.opts.Own != nil && s.u.opts.Own.OwnNews(s.u, s.whose(), f) {
		return
	}
	switch session := s.session(); {
	case session != "":
		s.u.opts.Observer.Said(s.u, session, f)
	case s.unit == "" && s.u.opts.Observer != nil:
		s.u.opts.Observer.Notification(s.u, f)
	}
}
