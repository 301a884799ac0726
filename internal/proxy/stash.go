package proxy

import (
	"container/list"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// stash keeps results that were too long for an answer, in memory and for a while. Each is for the principal and the
// endpoint that it was made for. It is safe for concurrent use.
type stash struct {
	count *count.Counters

	mu     sync.Mutex
	bounds config.KeptResults
	order  *list.List // of *stashed, the newest first
	known  map[string]*list.Element
	bytes  int64
	held   map[string]int64 // bytes by principal
	sweeps *time.Timer      // nil while nothing is kept
	closed bool
}

// stashed is one result that is kept. It is immutable.
type stashed struct {
	token, principal, view string
	mime                   string
	body                   string // the text, or the bytes of a blob
	blob                   bool
	page                   int // the longest page, in bytes as it is sent
	born                   time.Time

	up    *upstream.Upstream // whose result it is
	creds string             // what that got of the caller's credentials, by their key
}

func newStash(bounds config.KeptResults, c *count.Counters) *stash {
	return &stash{count: c, bounds: bounds, order: list.New(), known: map[string]*list.Element{}, held: map[string]int64{}}
}

// bound changes the bounds. What is kept beyond them goes.
func (s *stash) bound(b config.KeptResults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounds = b
	s.expire(time.Now())
	s.makeRoom(0, 0)
}

// put keeps a result and gives it a name that nobody can guess; false where there is no room for it at all.
func (s *stash) put(e *stashed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := int64(len(e.body))
	if s.closed || size > s.bounds.MaxBytes || s.bounds.MaxItems == 0 {
		s.count.Limit(count.LimitKept)
		return false
	}
	e.token, e.born = strings.ToLower(rand.Text()), time.Now() // lower case, since some clients write addresses so
	s.expire(e.born)
	s.makeRoom(size, 1)
	s.known[e.token] = s.order.PushFront(e)
	s.bytes += size
	s.held[e.principal] += size
	if s.sweeps == nil {
		s.sweeps = time.AfterFunc(s.bounds.MaxAge, s.sweep)
	}
	return true
}

// get gives a result to whom it was made for; nil to everybody else, as for one that never was.
func (s *stash) get(token string, c *Caller) *stashed {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(time.Now())
	el := s.known[token]
	if el == nil {
		return nil
	}
	if e := el.Value.(*stashed); e.principal == c.Principal && e.view == c.View && e.isFor(c) {
		return e
	}
	return nil
}

// isFor says whether a caller has the credentials with which the result was got.
func (e *stashed) isFor(c *Caller) bool {
	return e.up == nil || keyOf(e.up.Credentials(c.Headers)) == e.creds
}

// expire drops what is too old. s.mu is held.
func (s *stash) expire(now time.Time) {
	for el := s.order.Back(); el != nil && now.Sub(el.Value.(*stashed).born) >= s.bounds.MaxAge; el = s.order.Back() {
		s.drop(el)
	}
}

// makeRoom drops results until so much more has room: the oldest of the principal that holds most. s.mu is held.
func (s *stash) makeRoom(bytes int64, items int) {
	for s.order.Len() > 0 && (s.bytes+bytes > s.bounds.MaxBytes || s.order.Len()+items > s.bounds.MaxItems) {
		s.count.Limit(count.LimitKept)
		s.drop(s.oldestOf(s.greediest()))
	}
}

func (s *stash) greediest() (name string) {
	most := int64(-1)
	for principal, n := range s.held {
		if n > most {
			name, most = principal, n
		}
	}
	return name
}

func (s *stash) oldestOf(principal string) *list.Element {
	for el := s.order.Back(); el != nil; el = el.Prev() {
		if el.Value.(*stashed).principal == principal {
			return el
		}
	}
	return s.order.Back()
}

func (s *stash) drop(el *list.Element) {
	e := s.order.Remove(el).(*stashed)
	delete(s.known, e.token)
	s.bytes -= int64(len(e.body))
	if s.held[e.principal] -= int64(len(e.body)); s.held[e.principal] == 0 {
		delete(s.held, e.principal)
	}
}

// sweep drops what is too old and comes back for the rest.
func (s *stash) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.expire(now)
	el := s.order.Back()
	if el == nil || s.closed {
		s.sweeps = nil
		return
	}
	s.sweeps.Reset(max(el.Value.(*stashed).born.Add(s.bounds.MaxAge).Sub(now), time.Millisecond))
}

// stop drops everything, and keeps nothing from now on.
func (s *stash) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for el := s.order.Back(); el != nil; el = s.order.Back() {
		s.drop(el)
	}
	if s.sweeps != nil {
		s.sweeps.Stop()
	}
}
