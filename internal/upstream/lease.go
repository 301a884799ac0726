package upstream

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// patienceInTrouble is how long a call waits for an attempt to connect when the one before has failed.
	patienceInTrouble = 2 * time.Second
	// maxKeyedSlots bounds the slots of an upstream with sharing session that sets no instances.
	maxKeyedSlots = 64
	// idleUnit is how long the slot of a unit without an end of its own, a principal, may be unused.
	idleUnit = 10 * time.Minute
	// maxCredentialSlots bounds the slots of an upstream whose connections are bound to credentials.
	maxCredentialSlots = 256
)

// Unit says whose connection a call needs.
type Unit struct {
	// Key names the sharing unit: a session, a principal. Empty where nobody can be told apart; then an upstream that is
	// not shared gives the call a connection of its own.
	Key string
	// Ends says that the unit has an end of its own, which EndUnit is told; until then its connection is kept.
	Ends bool
	// Capabilities is the object that a legacy server is told on a connection that is made for this unit, or for a call of
	// nobody in particular: what the client can do. Empty for all that can be brought to a client, as is told on a
	// connection that was made beforehand, or that lists.
	Capabilities string
	// Principal is who the connection is counted for.
	Principal string
	// Credentials are what the upstream gets of the caller's; nil for nothing. A connection over HTTP serves one set only.
	Credentials *Credentials
	// Beside lets the call run beside others on an upstream that otherwise takes one at a time.
	Beside bool
}

// Lease is the use of one slot for one call.
type Lease struct {
	s    *slot
	conn conn
	peer *Peer
	once bool // the slot is for this call only
	// quiet says that the lease is no sign that anybody needs the upstream.
	quiet bool
	// pass is what the call gives back beside the slot: its place among those that run.
	pass func()
	// call says that the upstream does not retire before this lease is released.
	call bool
}

// Acquire gives the slot for a call, and waits for one that is being connected. An upstream in trouble is answered for
// at once, with an *Error that tells the reason and the next try.
func (u *Upstream) Acquire(ctx context.Context, unit Unit) (*Lease, error) {
	return u.forCall(func() (*Lease, error) { return u.acquireInTurn(ctx, unit) })
}

// forCall keeps the upstream from retiring until the lease that acquire gives is released.
func (u *Upstream) forCall(acquire func() (*Lease, error)) (*Lease, error) {
	u.use.begin()
	l, err := acquire()
	if err != nil {
		u.use.end()
		return nil, err
	}
	l.call = true
	return l, nil
}

func (u *Upstream) acquireInTurn(ctx context.Context, unit Unit) (*Lease, error) {
	pass, err := u.enter(ctx, unit)
	if err != nil {
		return nil, err
	}
	l, err := u.acquireFor(ctx, unit)
	if err != nil {
		pass()
		return nil, err
	}
	l.pass = pass
	return l, nil
}

// enter waits for a place among the calls that may run at a time.
func (u *Upstream) enter(ctx context.Context, unit Unit) (pass func(), err error) {
	gates := [3]*gate{&u.gate}
	n := 1
	if !unit.Beside {
		gates[n] = &u.single
		n++
	}
	if u.cfg.Sharing == config.SharingCall && u.binding(unit) != nil {
		gates[n] = &u.lone
		n++
	}
	leave := func(n int) {
		for n--; n >= 0; n-- {
			gates[n].leave()
		}
	}
	for i := range n {
		if err = gates[i].enter(ctx); err != nil {
			leave(i)
			break
		}
	}
	switch {
	case errors.Is(err, errQueueFull), errors.Is(err, errQueueLong):
		u.opts.Count.Limit(count.LimitQueue)
		return nil, &Error{Upstream: u.ID, Reason: ReasonOverloaded, Err: err}
	case err != nil:
		return nil, err
	}
	return func() { leave(n) }, nil
}

// acquireFor gives a slot for a call of this unit.
func (u *Upstream) acquireFor(ctx context.Context, unit Unit) (*Lease, error) {
	key, once := u.unitKey(unit)
	var own *slot // the unit's; a second one is not begun by the same call
	if key != "" {
		var err error
		if own, err = u.keyedSlot(key, unit); err != nil {
			return nil, err
		}
	}
	return u.acquire(ctx, own, once)
}

// acquire waits for a connection: that of one slot, or any that everybody shares. once says that the slot is for this
// lease only.
func (u *Upstream) acquire(ctx context.Context, own *slot, once bool) (*Lease, error) {
	began := time.Now()
	for {
		l, wait, err := u.pick(own, began)
		if l != nil || err != nil {
			if l != nil {
				l.once = once
			}
			return l, err
		}
		var patience <-chan time.Time
		if u.inTrouble(own) {
			patience = time.After(time.Until(began.Add(patienceInTrouble)))
		}
		select {
		case <-wait:
		case <-patience:
		case <-ctx.Done():
			if once {
				own.stop() // nobody else will ever use it
			}
			return nil, context.Cause(ctx)
		}
	}
}

// pick takes a ready slot, or gives the channel to wait on, or the reason why waiting is of no use. own is the slot of a
// unit; nil for everybody's.
func (u *Upstream) pick(own *slot, began time.Time) (*Lease, <-chan struct{}, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.closedOrBroken(); err != nil {
		return nil, nil, err
	}
	slots := u.shared
	if own != nil {
		slots = []*slot{own}
	}
	exclusive := u.cfg.Sharing == config.SharingCall
	var best, waiting, idle, unused *slot
	for _, s := range slots {
		switch {
		case s.state == StateIdle:
			if idle == nil {
				idle = s
			}
		case exclusive && !s.started:
			unused = s
		case exclusive && s.inflight > 0:
			waiting = s
		case s.conn != nil && s.conn.Err() != nil:
			waiting = s // it has died, and its slot will know in a moment
		case s.conn != nil && (best == nil || s.inflight < best.inflight):
			best = s
		case !s.ended && s.state == StateConnecting && (s.failures == 0 || time.Since(began) < patienceInTrouble):
			waiting = s
		}
	}
	if idle != nil && waiting == nil && (best == nil || best.inflight > 0) {
		u.wake(idle)
		waiting = idle
	}
	switch {
	case best != nil:
		best.inflight++
		best.uses++
		if exclusive && own == nil && u.cfg.Prewarm {
			u.warmShared()
		}
		return &Lease{s: best, conn: best.conn, peer: best.peer}, nil, nil
	case unused != nil && slots[0].peer != nil:
		u.startSlot(unused)
		return nil, u.changed, nil
	case waiting != nil:
		return nil, u.changed, nil
	}
	return nil, nil, u.down(slots[0])
}

// startSlot begins to connect a shared slot. u.mu is held.
func (u *Upstream) startSlot(s *slot) {
	s.started = true
	u.runs.Go(func() { s.run(u.ctx) })
}

// closedOrBroken tells why this upstream takes no call at all. u.mu is held.
func (u *Upstream) closedOrBroken() error {
	switch {
	case u.ctx.Err() != nil:
		return u.unavailable(ErrClosed, 0)
	case u.cfg.Problem != nil:
		return u.unavailable(u.cfg.Problem, 0)
	}
	return nil
}

// down is the error of a slot without a connection. u.mu is held.
func (u *Upstream) down(s *slot) error {
	reason := s.failure
	if reason == nil {
		reason = errors.New("the connection is being replaced")
	}
	if ChallengeOf(reason) != nil {
		return &Error{Upstream: u.ID, Reason: ReasonDenied, Err: reason}
	}
	return u.unavailable(reason, max(0, time.Until(s.retry)))
}

func (u *Upstream) unavailable(reason error, retry time.Duration) error {
	return &Error{Upstream: u.ID, Reason: ReasonUnavailable, RetryAfter: retry, Err: reason}
}

// inTrouble says whether the attempt before has failed: of a slot with credentials, or of those that everybody shares.
func (u *Upstream) inTrouble(own *slot) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if own != nil && own.creds != nil {
		return own.failures > 0
	}
	return u.shared[0].failures > 0
}

// Peer is what the handshake of this connection told.
func (l *Lease) Peer() *Peer { return l.peer }

// Start begins a request on the leased connection.
func (l *Lease) Start(ctx context.Context, out *Outgoing) (Exchange, error) {
	return l.conn.Start(ctx, out)
}

// Cancel tells the upstream that a request is given up. It returns at once: the message goes off the caller's path.
func (l *Lease) Cancel(id uint64, reason string) {
	if id == 0 || !l.s.cancels(l.conn) {
		return // no request is under way, or the server would end
	}
	l.s.set(func() { l.s.abandoned = time.Now() })
	l.s.u.off.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		_ = l.conn.Cancel(ctx, id, reason)
	})
}

// Release gives the slot back.
func (l *Lease) Release() {
	l.s.u.mu.Lock()
	l.s.inflight--
	if !l.quiet {
		l.s.lastUse = time.Now()
	}
	if l.s.u.cfg.Sharing == config.SharingCall {
		l.s.u.broadcast() // somebody may wait for it
	}
	l.s.u.mu.Unlock()
	if l.pass != nil {
		l.pass()
	}
	if l.once {
		l.s.stop()
	}
	if l.call {
		l.s.u.use.end()
	}
}

// Refuse answers a request of the upstream that cannot be brought to anybody. It returns at once.
func (l *Lease) Refuse(x Exchange, f *wire.Frame) {
	l.s.u.opts.Count.Drop(count.DropRequest)
	answer := Refusal(f)
	l.s.u.off.Soon(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		_ = x.Respond(ctx, answer)
	})
}

// AcquireShared gives the connection that everybody shares, also of an upstream whose calls have their own: the one
// that lists for the catalog. Such a lease does not keep the upstream from resting once it is given back.
func (u *Upstream) AcquireShared(ctx context.Context) (*Lease, error) {
	for {
		l, wait, err := u.pick(nil, time.Now())
		if l != nil || err != nil {
			if l != nil {
				l.quiet = true
			}
			return l, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Reply sends the answer to a request of the upstream. It returns at once: the message goes off the caller's path.
func (l *Lease) Reply(x Exchange, frame []byte) {
	l.s.u.off.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		if err := x.Respond(ctx, frame); err != nil {
			l.s.u.log.Debug("an answer to the upstream was not taken", zap.Error(err))
		}
	})
}
