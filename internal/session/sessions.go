package session

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Why there is no session for a request, besides the reasons of its id.
var (
	errEnded        = errors.New("the session was ended by its client")
	errManySessions = errors.New("too many sessions are in use (limits.max_sessions)")
)

// hold gives the session of that id, for this principal at this endpoint, and keeps it from being idle until it is
// released. A session that this process does not have, because it was idle or the process is new, comes to life again.
func (m *Manager) hold(id, view, principal string) (*session, error) {
	s, err := m.find(id, view, principal)
	if s == nil && err == nil {
		s, err = m.revive(id, view, principal)
	}
	if errors.Is(err, errOtherUser) {
		m.log.Warn("a session was asked for by somebody else", zap.String("principal", principal), zap.String("endpoint", "/"+view))
	}
	return s, err
}

// find gives the live session of that id, or neither it nor an error.
func (m *Manager) find(id, view, principal string) (*session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[id]
	switch {
	case s == nil:
		return nil, nil
	case s.principal != principal || s.view != view:
		return nil, errOtherUser
	case !time.Now().Before(s.expires):
		return nil, errExpired
	}
	// Under the lock of the table: whoever drops idle sessions must not find this one idle any more.
	s.hold()
	return s, nil
}

// revive makes the live state of a session of which only the id is left.
func (m *Manager) revive(id, view, principal string) (*session, error) {
	c, err := m.seal.open(id, view, principal, time.Now())
	if err != nil {
		return nil, err
	}
	s, fresh, err := m.admit(newSession(id, view, principal, c))
	if fresh {
		m.metrics.revived.Inc()
		// Nobody knows what has changed since the client was told of a change.
		s.news(declaredLists(m.proxy.Capabilities(view)))
	}
	return s, err
}

// declaredLists are the lists that a capabilities object promises to announce changes of.
func declaredLists(capabilities string) proxy.Changes {
	raw := []byte(capabilities)
	all, _ := wire.ObjectAt(raw, wire.Span{End: len(raw)})
	return proxy.Changes{Tools: all.Has(raw, "tools"), Prompts: all.Has(raw, "prompts"), Resources: all.Has(raw, "resources")}
}

// admit takes a session into the table and holds it. Where two requests bring one to life at a time, both get the one
// that was first. Over the bound, one that is idle makes room; it can come back.
func (m *Manager) admit(s *session) (_ *session, fresh bool, err error) {
	m.mu.Lock()
	// Upstreams are told of an end by the unit, which is the same for who comes after: nobody may use it before that.
	for m.leaving[s.id] != nil {
		told := m.leaving[s.id]
		m.mu.Unlock()
		<-told
		m.mu.Lock()
	}
	there, out, err := m.place(s)
	m.mu.Unlock()
	if out != nil {
		m.dropped(out)
	}
	return there, there == s, err
}

// place puts a session into the table and tells which one had to go for it. m.mu is held.
func (m *Manager) place(s *session) (there, out *session, err error) {
	if there = m.sessions[s.id]; there != nil {
		there.hold()
		return there, nil, nil
	}
	if m.revoked.has(s.unique) {
		return nil, nil, errEnded
	}
	if len(m.sessions) >= m.bounds.Load().MaxSessions {
		m.count.Limit(count.LimitSessions)
		if out = m.idlest(); out == nil {
			return nil, nil, errManySessions
		}
		m.takeOut(out)
	}
	m.sessions[s.id] = s
	m.parties[s.unit] = party{s.state.with(s.caller), aside{m, s}}
	s.hold()
	return s, out, nil
}

// idleSample is how many idle sessions are compared. A full table must not be walked for each session that comes.
const idleSample = 100

// idlest finds a session without any use: the one that has been so for longest, of those that it looks at. m.mu is held.
func (m *Manager) idlest() (out *session) {
	var since time.Time
	looked := 0
	for _, s := range m.sessions { // in no order
		if looked == idleSample {
			break
		}
		s.mu.Lock()
		if s.users == 0 {
			looked++
		}
		if s.users == 0 && (out == nil || s.lastUse.Before(since)) {
			out, since = s, s.lastUse
		}
		s.mu.Unlock()
	}
	return out
}

// takeOut takes a session out of the table; dropped does the rest. m.mu is held.
func (m *Manager) takeOut(s *session) {
	delete(m.sessions, s.id)
	delete(m.parties, s.unit)
	m.leaving[s.id] = make(chan struct{})
}

// dropped ends what still runs in a session that was taken out, and tells the upstreams.
func (m *Manager) dropped(s *session) {
	s.close()
	m.shelf.forget(&s.tapes)
	m.opt.Ended(s.unit)
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.leaving[s.id])
	delete(m.leaving, s.id)
}

// sweep drops the state of sessions that are idle or too old.
func (m *Manager) sweep(now time.Time) {
	m.mu.Lock()
	var over []*session
	for _, s := range m.sessions {
		if s.over(now, m.opt.Sessions.IdleTimeout) {
			m.takeOut(s)
			over = append(over, s)
		}
	}
	m.mu.Unlock()
	for _, s := range over {
		m.dropped(s)
	}
}

// end ends a session for good, with all that runs in it, whether this process has its state or not.
func (m *Manager) end(id, view, principal string) error {
	c, err := m.seal.open(id, view, principal, time.Now())
	if err != nil {
		return err
	}
	if m.revoked.has(c.unique) {
		return errEnded
	}
	// First this: a request that comes now must not bring to life what is just taken out.
	m.revoked.add(c.unique, c.expires)
	m.mu.Lock()
	s := m.sessions[id]
	if s != nil {
		m.takeOut(s)
	}
	m.mu.Unlock()
	if s != nil {
		m.dropped(s)
	}
	return nil
}
