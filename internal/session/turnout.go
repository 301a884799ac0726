package session

// TurnOut ends what is open of those that may not use it any more: their sessions with all that runs in them, and their
// subscriptions. A session that may be used again is made anew from its id.
func (m *Manager) TurnOut(out func(view, principal string) bool) {
	m.mu.Lock()
	var over []*session
	for _, s := range m.sessions {
		if out(s.view, s.principal) {
			m.takeOut(s)
			over = append(over, s)
		}
	}
	for l := range m.listens {
		if out(l.view, l.principal) && !l.out {
			l.out = true
			close(l.ended)
		}
	}
	m.mu.Unlock()
	for _, s := range over {
		m.dropped(s)
	}
}
