package upstream

import (
	"context"
	"errors"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Owner says whose a connection is that does not serve everybody.
type Owner struct {
	// Unit is the session or principal; empty where the credentials alone decide.
	Unit string
	// Credentials is their key; empty for none.
	Credentials string
	// Lists says that it is the connection that lists and hears news for the credentials.
	Lists bool
}

// OwnObserver hears of connections that are somebody's own. Its methods are called from the goroutines that read and must
// not block.
type OwnObserver interface {
	// OwnReady says that such a connection was made, or its session was renewed.
	OwnReady(u *Upstream, of Owner)
	// OwnEnded says that it is gone for good.
	OwnEnded(u *Upstream, of Owner)
	// OwnNews is a notification that came on it outside any call; false where it says nothing to this observer.
	OwnNews(u *Upstream, of Owner, f *wire.Frame) bool
}

// whose tells whose this slot is.
func (s *slot) whose() Owner {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return Owner{Unit: s.owner, Credentials: s.creds.key(), Lists: s.lists()}
}

// hearsNews says whether the connection is one that a modern server is asked to announce changes on.
func (s *slot) hearsNews() bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	return s.wishes() != nil
}

// manySessions says whether several conversations share this slot, though it is not everybody's: they have the same
// credentials.
func (s *slot) manySessions() bool { return s.u.cfg.Sharing == config.SharingShared && s.creds != nil }

// Mask hides what is secret of the upstream, and of whoever the connection is for, in a text of which a part came from it.
func (l *Lease) Mask(text string) string { return l.s.mask().text(text) }

// AcquireList gives the connection that lists for these credentials. Such a lease does not keep it from resting.
func (u *Upstream) AcquireList(ctx context.Context, unit Unit) (*Lease, error) {
	if u.binding(unit) == nil {
		return u.AcquireShared(ctx)
	}
	l, err := u.acquireFirst(ctx, unit)
	if err == nil {
		l.quiet = true
	}
	return l, err
}

// ErrNoOwn means that a session has no connection of its own yet.
var ErrNoOwn = errors.New("the session has no connection of its own")

// AcquireOwn gives the connection that a session has for itself, if it has one. Such a lease does not keep it from resting.
func (u *Upstream) AcquireOwn(ctx context.Context, unit Unit) (*Lease, error) {
	key, once := u.unitKey(unit)
	u.mu.Lock()
	s := u.keyed[key]
	u.mu.Unlock()
	if once || s == nil {
		return nil, ErrNoOwn
	}
	l, err := u.acquire(ctx, s, false)
	if err == nil {
		l.quiet = true
	}
	return l, err
}

// AsksCallers says whether the server refuses who sends no credential, and gives what it says then; nil where it does not.
// It is there for those who send one.
func (u *Upstream) AsksCallers() *Challenge {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asksCallers()
}

// asksCallers is AsksCallers with u.mu held.
func (u *Upstream) asksCallers() *Challenge {
	if s := u.shared[0]; s.asks() {
		return ChallengeOf(s.failure)
	}
	return nil
}

// asks says whether the server refuses this connection for want of a credential. The upstream's mutex is held.
func (s *slot) asks() bool { return s.conn == nil && s.failure != nil && ChallengeOf(s.failure) != nil }
