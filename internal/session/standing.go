package session

import (
	"net/http"
	"sync"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// eventStream is an event stream that stays open: a legacy GET, a modern listen. One goroutine writes it.
type eventStream struct {
	m   *Manager
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
}

// openStream begins the response; false where there are too many streams.
func (m *Manager) openStream(w http.ResponseWriter, kind int) (*eventStream, bool) {
	if m.streams.Add(1) > int64(m.bounds.Load().MaxStreams) {
		m.streams.Add(-1)
		m.count.Limit(count.LimitStreams)
		return nil, false
	}
	m.open[kind].Add(1)
	streamHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
	return &eventStream{m: m, w: w, rc: http.NewResponseController(w)}, true
}

func (m *Manager) closeStream(kind int) {
	m.streams.Add(-1)
	m.open[kind].Add(-1)
}

// send writes bytes within the time that a client has to take them.
func (s *eventStream) send(b []byte) bool {
	s.buf = b
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write(b); err != nil {
		s.m.count.Drop(count.DropClientSlow)
		return false
	}
	return s.rc.Flush() == nil
}

func (s *eventStream) event(frame []byte) bool {
	return s.send(wire.AppendEvent(s.buf[:0], "message", "", frame))
}

func (s *eventStream) comment() bool { return s.send(wire.AppendComment(s.buf[:0], "")) }

// standing is the GET stream of a legacy session.
type standing struct {
	// owner holds a token while this is the newest stream, which owns what belongs to no request.
	owner  chan struct{}
	lost   chan struct{}
	ending chan struct{}
	once   sync.Once
	tape   *tape // nil where nobody can come back to it
}

func newStanding() *standing {
	return &standing{owner: make(chan struct{}, 1), lost: make(chan struct{}, 1), ending: make(chan struct{})}
}

func (st *standing) promote() {
	select {
	case <-st.lost:
	default:
	}
	select {
	case st.owner <- struct{}{}:
	default:
	}
}

func (st *standing) demote() {
	select {
	case <-st.owner:
	default:
	}
	select {
	case st.lost <- struct{}{}:
	default:
	}
}

func (st *standing) end() { st.once.Do(func() { close(st.ending) }) }

// stand serves the GET stream of a session until the client goes, the session ends or we stop. With the id of the last
// event that the client has seen it goes on with the stream of that event; with one that says nothing to us it begins.
func (m *Manager) stand(w http.ResponseWriter, r *http.Request, s *session) {
	if !accepted(r.Header).stream {
		invalidRequest(w, http.StatusNotAcceptable, nil, "Accept must name text/event-stream")
		return
	}
	es, ok := m.openStream(w, streamGet)
	if !ok {
		w.Header().Set("Retry-After", "60")
		invalidRequest(w, http.StatusServiceUnavailable, nil, "too many streams are open (limits.max_streams)")
		return
	}
	defer m.closeStream(streamGet)
	t, seq, known := m.shelf.find(&s.tapes, r.Header.Get(headerLastEvent))
	if known && t.kind == streamPost && m.resume(es, r, t, seq) {
		return
	}
	st := newStanding()
	defer func() { st.tape.leave(st) }()
	// From its first byte on the client may take it for granted that the stream owns the news.
	s.attach(st)
	defer s.detach(st)
	if m.beginStanding(es, st, s, t, seq) {
		m.writeStanding(es, st, s, r)
	}
}

// beginStanding says what a standing stream begins with. t is the one that it goes on with; nil, or the stream of a call,
// where it begins anew.
func (m *Manager) beginStanding(es *eventStream, st *standing, s *session, t *tape, seq uint64) bool {
	if t != nil && t.kind == streamGet {
		if missed, ok := t.takeOver(st, seq); ok {
			st.tape = t
			m.metrics.resumed[streamGet].Inc()
			return es.comment() && es.again(t, missed)
		}
	}
	st.tape = m.shelf.open(&s.tapes, nil, st)
	if st.tape.primes(s) {
		return es.send(st.tape.appendPriming(es.buf[:0]))
	}
	return es.comment()
}

// again says events that a client has missed.
func (s *eventStream) again(t *tape, missed []kept) bool {
	for _, k := range missed {
		if !s.send(wire.AppendEvent(s.buf[:0], "message", t.id(k.seq), k.frame)) {
			return false
		}
	}
	return true
}

func (m *Manager) writeStanding(es *eventStream, st *standing, s *session, r *http.Request) {
	tick := time.NewTicker(m.opt.KeepAlive)
	defer tick.Stop()
	var unread, letters <-chan struct{} // only the owner reads the news and the mail
	for going := true; going; {
		select {
		case <-st.owner:
			unread, letters = s.unread.signal, s.mail.signal
		case <-st.lost:
			unread, letters = nil, nil
			s.unread.wake()
			s.mail.wake()
		case <-unread:
			going = es.tellNews(st, s.unread)
		case <-letters:
			going = es.deliver(st, s.mail)
		case <-tick.C:
			going = es.comment()
		case <-r.Context().Done():
			return
		case <-st.ending:
			return
		case <-s.ended:
			return
		case <-m.drained:
			return
		}
	}
}

// tellNews writes what the client has not been told yet; false where it does not take it.
func (s *eventStream) tellNews(st *standing, n *news) bool {
	c := n.take()
	for _, a := range announcements(c, "") {
		if !s.say(st, a) {
			n.add(c) // for the next stream; what is told twice does no harm
			return false
		}
	}
	return true
}

// deliver writes the letters there are; false where the client does not take one, which then is the next stream's.
func (s *eventStream) deliver(st *standing, m *mail) bool {
	for l := m.next(); l != nil; l = m.next() {
		if !s.say(st, l.frame) {
			m.wake()
			return false
		}
		m.done(l)
	}
	return true
}

// say writes a frame as the next event of a standing stream.
func (s *eventStream) say(st *standing, frame []byte) bool {
	id, mine := st.tape.say(st, frame)
	return mine && s.send(wire.AppendEvent(s.buf[:0], "message", id, frame))
}
