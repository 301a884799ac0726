package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// session is the live state of one legacy conversation over HTTP. What must outlive it stands in its id.
type session struct {
	id        string // empty for a request that stands alone
	unit      string // what upstreams that are not shared know it by; never the id
	view      string
	principal string
	version   string // negotiated
	unique    uniqueID
	expires   time.Time
	caller    *proxy.Caller
	unread    *news
	mail      *mail
	state     standingState
	questions questions
	tapes     tapes
	ended     chan struct{}

	mu       sync.Mutex
	lastUse  time.Time
	users    int // HTTP requests under way
	inflight map[string][]*running
	streams  []*standing // the newest is the last
	closed   bool
}

func newSession(id, view, principal string, c claims) *session {
	s := &session{id: id, unit: c.unique.unit(), view: view, principal: principal, version: c.version, unique: c.unique, expires: c.expires,
		lastUse: time.Now(), unread: newNews(), mail: newMail(), ended: make(chan struct{}), inflight: map[string][]*running{}}
	s.caller = &proxy.Caller{Era: wire.Legacy, Version: c.version, View: view, Principal: principal, Unit: s.unit, Caps: c.caps}
	return s
}

func randomText() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// hold notes an HTTP request of the session: as long as it lasts, the session is not idle.
func (s *session) hold() {
	s.mu.Lock()
	s.users++
	s.lastUse = time.Now()
	s.mu.Unlock()
}

// release notes the end of an HTTP request.
func (s *session) release() {
	if s.alone() {
		s.close()
	}
	s.mu.Lock()
	s.users--
	s.lastUse = time.Now()
	s.mu.Unlock()
}

// over says whether the session has been idle for too long or is too old.
func (s *session) over(now time.Time, idleTimeout time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.expires) || s.users == 0 && now.Sub(s.lastUse) > idleTimeout
}

// running is one request under way.
type running struct{ cancel context.CancelCauseFunc }

// enter notes a request under way, so that the client can cancel it.
func (s *session) enter(id string, cancel context.CancelCauseFunc) *running {
	r := &running{cancel}
	s.mu.Lock()
	s.inflight[id] = append(s.inflight[id], r)
	closed := s.closed
	s.mu.Unlock()
	if closed {
		cancel(proxy.CauseSessionEnd)
	}
	return r
}

// leave notes the end of a request.
func (s *session) leave(id string, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(s.inflight[id], func(o *running) bool { return o == r })
	if len(rest) == 0 {
		delete(s.inflight, id)
		return
	}
	s.inflight[id] = rest
}

// cancel ends the request with that id. Some clients give several requests one id; then nobody can tell which is meant,
// and none is touched.
func (s *session) cancel(id string) {
	s.mu.Lock()
	calls := s.inflight[id]
	var only *running
	if len(calls) == 1 {
		only = calls[0]
	}
	s.mu.Unlock()
	if only != nil {
		only.cancel(proxy.CauseClient)
	}
}

// close ends all that runs in the session.
func (s *session) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.ended)
	defer s.state.close()
	var calls []*running
	for _, c := range s.inflight {
		calls = append(calls, c...)
	}
	s.mu.Unlock()
	for _, c := range calls {
		c.cancel(proxy.CauseSessionEnd)
	}
}

// news tells the session of changes: on its newest standing stream, or on the next stream there is.
func (s *session) news(c proxy.Changes) { s.unread.add(c) }

// attach adds a standing stream, which from now on owns what belongs to no request.
func (s *session) attach(st *standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.streams); n > 0 {
		s.streams[n-1].demote()
		if n >= maxStandingPerSession {
			s.streams[0].end()
			s.streams = s.streams[1:]
		}
	}
	s.streams = append(s.streams, st)
	st.promote()
}

// maxStandingPerSession bounds the standing streams that one session may have; over it the oldest ends.
const maxStandingPerSession = 8

// detach takes a standing stream away; the next newest takes over.
func (s *session) detach(st *standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, x := range s.streams {
		if x == st {
			s.streams = append(s.streams[:i], s.streams[i+1:]...)
			break
		}
	}
	if n := len(s.streams); n > 0 {
		s.streams[n-1].promote()
	}
}
