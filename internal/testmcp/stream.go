package testmcp

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// item is one thing to be put on an HTTP response. Exactly one of frame, raw, take and cut is set, or none with
// last, which ends the response without an answer.
type item struct {
	frame []byte
	raw   []byte           // bytes for an event stream as they are
	take  http.HandlerFunc // takes the response over
	cut   *atomic.Bool     // breaks the connection the first time that it is reached
	last  bool             // nothing comes after it
}

// stream is what is to be said on one response. It keeps everything, so that a response that broke can be
// followed again from any point. One writer appends, any number of followers read.
type stream struct {
	name string

	mu      sync.Mutex
	items   []item
	changed chan struct{}
}

func newStream(name string) *stream { return &stream{name: name, changed: make(chan struct{})} }

func (s *stream) add(it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, it)
	close(s.changed)
	s.changed = make(chan struct{})
}

// next waits for item number i; ok is false when ctx ended before.
func (s *stream) next(ctx context.Context, i int) (it item, ok bool) {
	for {
		s.mu.Lock()
		changed := s.changed
		if i < len(s.items) {
			it = s.items[i]
			s.mu.Unlock()
			return it, true
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return item{}, false
		}
	}
}
