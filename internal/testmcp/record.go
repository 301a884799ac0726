package testmcp

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Kind says what a Record tells.
type Kind string

// The kinds of records.
const (
	Start   Kind = "start"   // a child began, or an HTTP server began to listen
	Exit    Kind = "exit"    // a child ended; Text has the code, or "gone" if it said nothing
	In      Kind = "in"      // a frame arrived
	Out     Kind = "out"     // a frame was about to be sent
	Request Kind = "request" // an HTTP request arrived; Text has verb and path
	Cancel  Kind = "cancel"  // a call was cancelled; Text has the cause
	Closed  Kind = "closed"  // the peer closed a response stream or stdin
	Deleted Kind = "deleted" // a session was ended by DELETE
	Signal  Kind = "signal"  // a child got a signal; Text has its name
	Spawned Kind = "spawned" // a child started a process; Text has its pid
	Note    Kind = "note"    // a line of the script's own
)

// Record is one thing that an upstream saw or did. Records of one process come in the order in which they
// happened, and whatever an upstream recorded before it answered is there when the answer is seen.
type Record struct {
	Time   time.Time
	PID    int // of the child; of the test itself for HTTP servers
	Kind   Kind
	Conn   string // the conversation: "pipe", a legacy session id, or "modern"
	Frame  Raw    // In: all bytes; Out: the first 64 KiB
	Method string
	ID     Raw
	Header http.Header // of the HTTP request that brought it
	Text   string

	Args, Env []string // Start of a child
	Dir       string   // Start of a child

	answer bool
}

func (r Record) String() string {
	s := fmt.Sprintf("%s %d %s %s", r.Time.Format("05.000"), r.PID, r.Kind, r.Conn)
	for _, more := range []string{r.Text, clip(string(r.Frame), 300)} {
		if more != "" {
			s += " " + more
		}
	}
	if r.Frame == nil && r.ID != nil {
		s += " id " + string(r.ID)
	}
	return s
}

func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > n {
		return s[:n] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

// sink takes records, and gives the signals of the test. A sink that is nil in effect drops everything.
type sink interface {
	record(Record)
	// signal is closed once the test has given that signal. Signals stay given.
	signal(name string) <-chan struct{}
}

// outLimit is how much of a sent frame is kept. What is sent is known to the script anyway.
const outLimit = 64 << 10

func (in *Instance) record(r Record) {
	if in.srv.Quiet && (r.Kind == In || r.Kind == Out || r.Kind == Request) {
		return
	}
	if r.Kind == Out && len(r.Frame) > outLimit {
		r.Frame = r.Frame[:outLimit:outLimit]
	}
	r.Time, r.PID = time.Now(), selfPID
	in.rec.record(r)
}

// Received matches frames of this method that arrived at an upstream.
func Received(method string) func(Record) bool {
	return func(r Record) bool { return r.Kind == In && r.Method == method }
}

// Is matches records of this kind.
func Is(k Kind) func(Record) bool {
	return func(r Record) bool { return r.Kind == k }
}

// Noted matches the line that a script put into the record with Call.Note.
func Noted(text string) func(Record) bool {
	return func(r Record) bool { return r.Kind == Note && r.Text == text }
}

// CalledTool matches tools/call frames for the tool of this wire name.
func CalledTool(name string) func(Record) bool {
	return func(r Record) bool {
		return r.Kind == In && r.Method == "tools/call" && r.Frame.At("params", "name").Str() == name
	}
}
