package testmcp

import (
	"fmt"
	"net/http"
	"strconv"
)

// Answers says in which form an HTTP server answers requests.
type Answers int

// The forms.
const (
	AsNeeded Answers = iota // JSON, unless something comes before the answer
	AsJSON                  // always JSON; what comes before the answer is not sent
	AsEvents                // always an event stream, its headers at once
)

// follower writes a stream to one HTTP response.
type follower struct {
	h      *HTTPServer
	w      http.ResponseWriter
	r      *http.Request
	st     *stream
	modern bool
	form   Answers
	begun  bool // the event stream's headers are out
}

// run writes from item i on until the last one; false means that the client went away first.
func (f *follower) run(i int) bool {
	if f.form == AsEvents {
		f.begin()
	}
	for ; ; i++ {
		it, ok := f.st.next(f.r.Context(), i)
		if !ok {
			return false
		}
		if f.put(i, it); it.last {
			return true
		}
		if it.cut != nil && it.cut.CompareAndSwap(false, true) {
			Reset(f.w, f.r)
			return true
		}
	}
}

func (f *follower) put(i int, it item) {
	switch {
	case it.take != nil:
		it.take(f.w, f.r)
	case it.raw != nil:
		f.begin()
		f.bytes(it.raw)
	case it.frame == nil:
		if it.last && f.form != AsJSON {
			f.begin()
		}
	case f.begun || f.form == AsEvents || f.form == AsNeeded && !it.last:
		f.begin()
		f.bytes(f.h.event(f.eventID(i), it.frame))
	case it.last:
		f.json(it.frame)
	}
}

// begin sends the headers of an event stream, once.
func (f *follower) begin() {
	if f.begun {
		return
	}
	f.begun = true
	h := f.w.Header()
	h.Set("Content-Type", orElse(f.h.opt.EventType, "text/event-stream"))
	h.Set("Cache-Control", "no-cache, no-transform")
	f.h.addHeaders(h, f.r)
	f.w.WriteHeader(http.StatusOK)
	f.bytes([]byte(f.h.prime(f.eventID(-1))))
}

func (f *follower) bytes(b []byte) {
	_, _ = f.w.Write(b) // a client that is gone shows in the request's context
	_ = http.NewResponseController(f.w).Flush()
}

func (f *follower) json(frame []byte) {
	h := f.w.Header()
	h.Set("Content-Type", orElse(f.h.opt.JSONType, "application/json"))
	f.h.addHeaders(h, f.r)
	h.Set("Content-Length", strconv.Itoa(len(frame)))
	f.w.WriteHeader(f.status(frame))
	f.bytes(frame)
}

// status is the HTTP status that the modern revision wants for an answer; 200 for everything legacy.
func (f *follower) status(frame []byte) int {
	if !f.modern {
		return http.StatusOK
	}
	switch Raw(frame).At("error", "code").Int() {
	case codeHeader, codeCapability, codeVersion:
		return http.StatusBadRequest
	case codeNoMethod:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// eventID names an item of a stream that can be resumed; "" where there is no resuming.
func (f *follower) eventID(i int) string {
	if !f.h.opt.Resumable || f.modern {
		return ""
	}
	return fmt.Sprintf("%s.%d", f.st.name, i)
}
