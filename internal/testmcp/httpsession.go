package testmcp

import (
	"slices"
	"strconv"
	"sync"
)

// httpSession is a legacy conversation over HTTP with its streams.
type httpSession struct {
	*session

	mu      sync.Mutex
	gets    []*stream          // open GET streams, the newest last
	pending []item             // unrelated frames that wait for a GET stream
	streams map[string]*stream // by name, for resuming
	count   int                // of streams
	called  int                // tools/call requests
}

func newHTTPSession(in *Instance, label string) *httpSession {
	s := &httpSession{streams: map[string]*stream{}}
	s.session = in.newSession(label, s.send)
	return s
}

// send puts a frame on the stream of its call, or on the newest GET stream.
func (s *httpSession) send(frame []byte, rel *Call) {
	it := item{frame: frame}
	if rel != nil && rel.stream != nil {
		it.last = parseMessage(frame).isAnswer()
		rel.stream.add(it)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.gets) == 0 {
		s.pending = append(s.pending, it)
		return
	}
	s.gets[len(s.gets)-1].add(it)
}

func (s *httpSession) newStream() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	st := newStream(strconv.Itoa(s.count))
	s.streams[st.name] = st
	return st
}

func (s *httpSession) byName(name string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[name]
}

// openGet makes a GET stream that begins with what has waited for one.
func (s *httpSession) openGet() *stream {
	st := s.newStream()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.pending {
		st.add(it)
	}
	s.pending = nil
	s.gets = append(s.gets, st)
	return st
}

func (s *httpSession) closeGet(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets = slices.DeleteFunc(s.gets, func(x *stream) bool { return x == st })
}

func (s *httpSession) eachGet(f func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.gets {
		f(st)
	}
}

// callsTool counts tools/call requests.
func (s *httpSession) callsTool() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called++
	return s.called
}

func (s *httpSession) dropStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.name)
}

// end ends the session's calls and every response that is still open, without an answer.
func (s *httpSession) end() {
	s.close(ErrSessionEnded)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.add(item{last: true})
	}
}
