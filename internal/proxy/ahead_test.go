package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// saying is a legacy server that says these lines when its tool is called, with a pause before each that begins with a
// duration and a space. ID stands for the id of the call.
func saying(lines ...string) *server {
	s := (&server{id: "s", era: wire.Legacy}).tools("ask")
	s.on = func(f *wire.Frame, w io.Writer) (string, bool) {
		if f.Method != "tools/call" {
			return "", false
		}
		id := string(f.ID.Of(f.Raw))
		go func() {
			for _, line := range lines {
				if wait, rest, ok := strings.Cut(line, " "); ok {
					d, err := time.ParseDuration(wait)
					if err != nil {
						panic(err)
					}
					time.Sleep(d)
					line = rest
				}
				s.mu.Lock()
				_, _ = fmt.Fprintln(s.w, strings.ReplaceAll(line, "ID", id))
				s.mu.Unlock()
			}
		}()
		return "", true
	}
	return s
}

const (
	elicitA = `{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"A"}}`
	elicitB = `{"jsonrpc":"2.0","id":"b","method":"elicitation/create","params":{"message":"B"}}`
	roots   = `{"jsonrpc":"2.0","id":3,"method":"roots/list"}`
	done    = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}`
	takeA   = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`
	logged  = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
)

// What a server asks at once comes to a modern client in one round; what comes later, in the next.
func TestQuestionsThatComeTogether(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string // the messages of the questions, in order; or the text of a result
		waits time.Duration
	}{
		"alone":                        {[]string{elicitA}, "A", quietAfter},
		"at once":                      {[]string{elicitA, roots, elicitB}, "A roots B", quietAfter},
		"a little apart":               {[]string{elicitA, "40ms " + elicitB}, "A B", 40*time.Millisecond + quietAfter},
		"too late":                     {[]string{elicitA, "60ms " + elicitB}, "A", quietAfter},
		"with a log message between":   {[]string{elicitA, logged, roots}, "A roots", quietAfter},
		"taken back":                   {[]string{elicitA, elicitB, takeA}, "B", quietAfter},
		"taken back, and asked anew":   {[]string{elicitA, takeA, "300ms " + elicitB}, "B", 300*time.Millisecond + quietAfter},
		"the server does not wait":     {[]string{elicitA, elicitB, "40ms " + done}, "done", 40 * time.Millisecond},
		"with one id":                  {[]string{elicitA, strings.Replace(elicitA, "A", "second", 1)}, "A", quietAfter},
		"one that nobody can be asked": {[]string{strings.Replace(roots, "roots/list", "sampling/createMessage", 1), elicitA}, "A", quietAfter},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, Options{}, withPerson, saying(c.lines...))
				defer st.stop()
				caller := askable()
				caller.Caps |= CapRoots
				time.Sleep(time.Second) // until its list is there
				began := time.Now()
				got := st.text(caller, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__ask","arguments":{}}}`)
				if took := time.Since(began); took != c.waits {
					t.Errorf("it took %v, want %v", took, c.waits)
				}
				if asked := askedIn(t, got); asked != c.want {
					t.Errorf("the client is asked for %q, want %q:\n%s", asked, c.want, got)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				st.nothingLeft()
			})
		})
	}
}

// askedIn gives what a result asks for, or its text.
func askedIn(t *testing.T, answer string) string {
	t.Helper()
	f, err := wire.Parse([]byte(answer), wire.Upstream, wire.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	requests, ok := wire.ObjectAt(f.Raw, f.Body.Get(f.Raw, "inputRequests"))
	if !ok {
		return wire.PlainResult(f).Text
	}
	var asked []string
	for _, m := range requests.Members {
		q, _ := wire.ObjectAt(f.Raw, m.Value)
		params, _ := wire.ObjectAt(f.Raw, q.Get(f.Raw, "params"))
		text, ok := wire.DecodeString(params.Get(f.Raw, "message").Of(f.Raw))
		if !ok {
			text = "roots"
		}
		asked = append(asked, text)
	}
	return strings.Join(asked, " ")
}

// A server that asks on and on does not keep the client waiting for the first question, and one that asks for very much is
// refused what is too much.
func TestQuestionsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		for i := range 60 {
			lines = append(lines, "40ms "+strings.Replace(elicitA, `"a"`, fmt.Sprint(i), 1))
		}
		s := saying(lines...)
		st := newStage(t, Options{}, withPerson, s)
		defer st.stop()
		time.Sleep(time.Second) // until its list is there
		began := time.Now()
		got := st.text(askable(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__ask","arguments":{}}}`)
		if took := time.Since(began); took > askingMost+quietAfter {
			t.Errorf("the client hears of it after %v", took)
		}
		if n := strings.Count(got, `"method":"elicitation/create"`); n != maxAsks {
			t.Errorf("%d questions come together, want %d", n, maxAsks)
		}
		synctest.Wait()
		if n := s.sent(`"action":"decline"`); n == 0 {
			t.Error("none is refused")
		}
		time.Sleep(time.Hour)
		st.nothingLeft()
	})
}

// What comes while a call is parked is not lost: a later question comes in the next round, and an answer ends the call.
func TestWhatComesWhileACallIsParked(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want string
	}{
		"a question":    {elicitB, "B"},
		"the answer":    {done, "done"},
		"a log message": {logged, "later"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, Options{}, withPerson, saying(elicitA, "10s "+c.line, "30s "+strings.Replace(done, "done", "later", 1)))
				defer st.stop()
				state := st.parkOne(askable())
				time.Sleep(20 * time.Second)
				if asked := askedIn(t, st.text(askable(), comeBack(state, accepted))); asked != c.want {
					t.Errorf("it goes on with %q, want %q", asked, c.want)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				st.nothingLeft()
			})
		})
	}
}

// All that was asked is answered, each to its own question, and what a client leaves out is asked again.
func TestTheAnswersOfARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := saying(elicitA, elicitB, "2s "+done)
		st := newStage(t, Options{}, withPerson, s)
		defer st.stop()
		state := st.parkOne(askable())
		got := st.text(askable(), comeBack(state, `{"q2":{"action":"accept","content":{"of":"B"}}}`))
		if asked := askedIn(t, got); asked != "A" {
			t.Fatalf("it asks for %q again", asked)
		}
		got = st.text(askable(), comeBack(st.stateIn(got), `{"q1":{"action":"accept","content":{"of":"A"}}}`))
		if asked := askedIn(t, got); asked != "done" {
			t.Errorf("it ends with %q", asked)
		}
		for _, want := range []string{`"id":"a","result":{"action":"accept","content":{"of":"A"}}`, `"id":"b","result":{"action":"accept","content":{"of":"B"}}`} {
			if n := s.sent(want); n != 1 {
				t.Errorf("the server got %d times %s", n, want)
			}
		}
		st.nothingLeft()
	})
}

// sent counts what the server got that contains the text.
func (s *server) sent(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(strings.Join(s.seen, "\n"), text)
}
