package testmcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Event is one SSE event as it came.
type Event struct {
	Name    string // "" is an event without a name
	ID      string
	HasID   bool
	Retry   string
	Data    Raw
	HasData bool
	At      time.Time
}

// Message reads the event's data as a frame.
func (e Event) Message() Message { return parseMessage(e.Data) }

// Answer is how a request ended.
type Answer struct {
	Message        // zero if there was no answer
	Status  int    // HTTP; 0 if no response began
	Body    []byte // of a response that is no event stream
	Header  http.Header
	Error   error   // why there is no answer
	Before  []Event // events of the stream in front of the answer
	Took    time.Duration
}

// Text gives the first text block of a tool result.
func (a Answer) Text() string { return a.Result().At("content", 0, "text").Str() }

// IsError says whether a tool result has isError set.
func (a Answer) IsError() bool { return string(a.Result().At("isError")) == "true" }

// Code gives the JSON-RPC error code, 0 if there is none.
func (a Answer) Code() int { return a.Err().At("code").Int() }

// ErrNoAnswer says that a stream ended without the answer it was for.
var ErrNoAnswer = errors.New("the response ended without an answer")

var errClosedByTest = errors.New("closed by the test")

// Stream is one HTTP response: an event stream, or a body. It is read in the background and keeps everything.
type Stream struct {
	ID     string // of the request, raw JSON; "" if it was not one
	Status int    // HTTP; 0 if no response began
	Header http.Header
	Began  time.Time // when the request was sent

	c      *Client
	cancel context.CancelCauseFunc
	held   chan struct{} // closed when reading may begin

	mu       sync.Mutex
	events   []Event
	comments int
	body     []byte
	over     bool
	err      error
	changed  chan struct{}
	read     int // events given by Next
}

func newClientStream(c *Client, cancel context.CancelCauseFunc) *Stream {
	s := &Stream{c: c, cancel: cancel, held: make(chan struct{}), Header: http.Header{}, Began: time.Now(), changed: make(chan struct{})}
	if !c.HoldReading {
		s.Resume()
	}
	return s
}

// send waits for the response's headers and leaves the rest to a goroutine, which ends with the body.
func (s *Stream) send(ctx context.Context, req *http.Request) {
	late := time.AfterFunc(Patience, func() { s.cancel(fmt.Errorf("no response within %v", Patience)) })
	resp, err := s.c.http.Do(req)
	late.Stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		s.finish(err)
		return
	}
	s.Status, s.Header = resp.StatusCode, resp.Header
	s.c.wg.Go(func() { s.follow(ctx, resp) })
}

func (s *Stream) follow(ctx context.Context, resp *http.Response) {
	defer resp.Body.Close()
	select {
	case <-s.held:
	case <-ctx.Done():
	}
	if ct, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); ct == "text/event-stream" {
		s.finish(readEvents(resp.Body, s.arrived, s.comment))
		return
	}
	b, err := io.ReadAll(resp.Body)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	s.mu.Lock()
	s.body = b
	s.mu.Unlock()
	s.finish(err)
}

func (s *Stream) arrived(e Event) {
	s.update(func() { s.events = append(s.events, e) })
	if m := e.Message(); e.HasData && m.kind() == messageRequest {
		s.c.wg.Go(func() { s.c.reply(m) }) // the stream must be read on meanwhile
	}
}

func (s *Stream) comment() { s.update(func() { s.comments++ }) }

func (s *Stream) finish(err error) {
	s.update(func() {
		s.over = true
		if s.err == nil {
			s.err = err
		}
	})
	s.cancel(nil)
}

func (s *Stream) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until the condition, which is asked under the lock, holds; false means that Patience ran out.
func (s *Stream) until(condition func() bool) bool {
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		ok, changed := condition(), s.changed
		s.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}

// Next gives the next event; ok is false when the stream has ended or nothing came within Patience.
func (s *Stream) Next() (e Event, ok bool) {
	s.until(func() bool { return s.over || len(s.events) > s.read })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) <= s.read {
		return Event{}, false
	}
	s.read++
	return s.events[s.read-1], true
}

// WaitEvent gives the first event that matches, past ones included, and fails the test if none comes.
func (s *Stream) WaitEvent(match func(Event) bool) Event {
	s.c.t.Helper()
	i := -1
	s.until(func() bool {
		i = slices.IndexFunc(s.events, match)
		return i >= 0 || s.over
	})
	events := s.Events()
	if i < 0 {
		s.c.t.Fatalf("the event did not come; HTTP %d, %d events, over: %v", s.Status, len(events), s.Over())
	}
	return events[i]
}

// WaitMethod waits for a message of this method and gives it.
func (s *Stream) WaitMethod(method string) Message {
	s.c.t.Helper()
	return s.WaitEvent(func(e Event) bool { return e.Message().Method == method }).Message()
}

// WaitComments waits until n comment lines have come.
func (s *Stream) WaitComments(n int) bool {
	s.until(func() bool { return s.comments >= n || s.over })
	return s.Comments() >= n
}

// WaitOver waits for the end of the response and says whether it came.
func (s *Stream) WaitOver() bool { return s.until(func() bool { return s.over }) }

// Final waits for the answer to the request.
func (s *Stream) Final() Answer {
	n := -1
	ok := s.until(func() bool {
		n = slices.IndexFunc(s.events, func(e Event) bool { return e.HasData && e.Message().isAnswer() })
		return n >= 0 || s.over
	})
	a := Answer{Status: s.Status, Header: s.Header, Took: time.Since(s.Began)}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Body, a.Error = slices.Clone(s.body), s.err
	switch m := parseMessage(s.body); {
	case n >= 0:
		a.Message, a.Before, a.Error = s.events[n].Message(), slices.Clone(s.events[:n]), nil
	case m.isAnswer():
		a.Message = m
	case !ok:
		a.Error = fmt.Errorf("no answer within %v", Patience)
	case a.Error == nil:
		a.Error, a.Before = ErrNoAnswer, slices.Clone(s.events)
	}
	return a
}

// Events gives the events so far.
func (s *Stream) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// LastID gives the newest event id, for resuming.
func (s *Stream) LastID() string {
	for _, e := range slices.Backward(s.Events()) {
		if e.HasID {
			return e.ID
		}
	}
	return ""
}

// Comments says how many comment lines have come.
func (s *Stream) Comments() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.comments
}

// Over says whether the response has ended.
func (s *Stream) Over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Err says why the response ended; nil for an orderly end or none yet.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Resume begins the reading of a response that HoldReading has left unread. It is called once.
func (s *Stream) Resume() { close(s.held) }

// Close ends the response from the client's side, which closes its connection.
func (s *Stream) Close() { s.cancel(errClosedByTest) }
