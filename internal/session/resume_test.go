package session

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const callWithProgress = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t","_meta":{"progressToken":9}}}`

// steps tells of n steps, one each second, and answers with a text of that size.
func steps(n, size int) func(func(string, string)) string {
	return func(say func(method, params string)) string {
		for i := range n {
			time.Sleep(time.Second)
			say("notifications/progress", fmt.Sprintf(`{"progressToken":TOKEN,"progress":%d}`, i+1))
		}
		time.Sleep(time.Second)
		return `"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`
	}
}

// seen is one event as a client reads it.
type seen struct{ id, data string }

// events gives what has come, comments apart.
func (r *response) events() (out []seen) {
	for block := range strings.SplitSeq(r.text(), "\n\n") {
		var e seen
		for line := range strings.SplitSeq(block, "\n") {
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				e.id = v
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = v
			}
		}
		if e != (seen{}) {
			out = append(out, e)
		}
	}
	return out
}

func (r *response) lastID() string {
	all := r.events()
	return all[len(all)-1].id
}

// short tells what the messages of events are: the number of a step, "answer", "error" or a method.
func short(t *testing.T, events []seen) (out []string) {
	t.Helper()
	for _, e := range events {
		var m struct {
			Method string
			Params struct{ Progress int }
			Result json.RawMessage
			Error  json.RawMessage
		}
		switch {
		case e.data == "":
			continue
		case json.Unmarshal([]byte(e.data), &m) != nil:
			t.Errorf("the event %q is no message", e.data)
		case m.Method == "notifications/progress":
			out = append(out, fmt.Sprint(m.Params.Progress))
		case m.Method != "":
			out = append(out, m.Method)
		case m.Error != nil:
			out = append(out, "error")
		default:
			out = append(out, "answer")
		}
	}
	return out
}

// comesBack asks for what came after an event.
func (c *client) comesBack(lastEvent string) *response {
	return c.with("Last-Event-Id", lastEvent).do(http.MethodGet, "")
}

func words(texts ...string) []string { return texts }

func wantEvents(t *testing.T, what string, r *response, want ...string) {
	t.Helper()
	if got := short(t, r.events()); !slices.Equal(got, want) {
		t.Errorf("%s: the events are %q, want %q", what, got, want)
	}
}

func TestAClientThatComesBackMissesNothingAndHearsNothingTwice(t *testing.T) {
	whole := words("1", "2", "3", "4", "5", "6", "answer")
	for cut := range len(whole) { // how many events it has had
		for _, back := range []time.Duration{0, 2500 * time.Millisecond, 20 * time.Second} {
			t.Run(fmt.Sprintf("cut after %d, back after %v", cut, back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newStage(t, &backend{tool: steps(6, 10)}, func(o *Options) { o.StreamAfter = 100 * time.Millisecond })
					defer st.stop()
					c := legacyClient(st)
					r := c.post(callWithProgress)
					time.Sleep(time.Duration(cut)*time.Second + 500*time.Millisecond)
					r.cancel()
					time.Sleep(back)
					synctest.Wait()
					wantEvents(t, "before", r, whole[:cut]...)
					again := c.comesBack(r.lastID()).wait()
					wantEvents(t, "after", again, whole[cut:]...)
					if synctest.Wait(); !r.over() {
						t.Error("the first response is not over")
					}
					if st.metric("mcp_proxy_streams_resumed_total", "kind", "post") != 1 {
						t.Error("the return is not counted")
					}
					if open := st.metric("mcp_proxy_streams", "kind", "post") + st.metric("mcp_proxy_streams", "kind", "get"); open != 0 {
						t.Errorf("%v streams are open", open)
					}
					time.Sleep(sampleWindow + time.Second)
					if n := st.metric("mcp_proxy_resume_buffer_bytes"); n != 0 {
						t.Errorf("%v bytes are kept in the end", n)
					}
				})
			})
		}
	}
}

// The old connection is often not known to be broken when the client is back.
func TestAClientThatIsBackBeforeItsOldConnectionBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(4, 10)}, nil)
		defer st.stop()
		c := legacyClient(st)
		r := c.post(callWithProgress)
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		again := c.comesBack(r.events()[1].id) // it has read step 1, and step 2 was lost on its way
		time.Sleep(time.Second)
		third := c.comesBack(again.lastID())
		third.wait()
		r.cancel()
		wantEvents(t, "first", r, "1", "2")
		wantEvents(t, "second", again, "2", "3")
		wantEvents(t, "third", third, "4", "answer")
	})
}

// Nobody knows whether what was written has arrived.
func TestAnAnswerThatWasLostOnItsWayIsSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(1, 10)}, nil)
		defer st.stop()
		c := legacyClient(st)
		r := c.post(callWithProgress).wait()
		first := r.events()[1].id
		wantEvents(t, "first", r, "1", "answer")
		for range 2 {
			wantEvents(t, "again", c.comesBack(first).wait(), "answer")
		}
		time.Sleep(sampleWindow + time.Second)
		late := c.comesBack(first)
		synctest.Wait()
		if late.over() || len(short(t, late.events())) != 0 {
			t.Errorf("after the window the client gets %q", late.text())
		}
		late.cancel()
	})
}

func TestAWriteThatFailsBeginsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(3, 10)}, nil)
		defer st.stop()
		c := legacyClient(st)
		r := c.post(callWithProgress)
		time.Sleep(1500 * time.Millisecond)
		r.breaks()
		time.Sleep(time.Second)
		wantEvents(t, "after", c.comesBack(r.lastID()).wait(), "2", "3", "answer")
		if st.metric("mcp_proxy_dropped_total", "what", count.DropClientSlow) != 1 {
			t.Error("the broken write is not counted")
		}
	})
}

func TestACallWhoseClientStaysAwayIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: steps(600, 10)}
		st := newStage(t, b, nil)
		defer st.stop()
		c := legacyClient(st)
		r := c.post(callWithProgress)
		time.Sleep(1500 * time.Millisecond)
		r.cancel()
		for range 3 { // each return gives it another window
			time.Sleep(sampleWindow - time.Second)
			r = c.comesBack(r.lastID())
			time.Sleep(1500 * time.Millisecond)
			r.cancel()
		}
		time.Sleep(sampleWindow - time.Second)
		if synctest.Wait(); b.received("notifications/cancelled") != 0 {
			t.Error("it is cancelled although the client came back")
		}
		time.Sleep(2 * time.Second)
		if synctest.Wait(); b.received("notifications/cancelled") != 1 {
			t.Error("it is not cancelled")
		}
		if n := st.metric("mcp_proxy_resume_buffer_bytes"); n != 0 {
			t.Errorf("%v bytes are kept of it", n)
		}
	})
}

func TestWhoCannotComeBackToAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(20, 10)}, nil)
		defer st.stop()
		c, other := legacyClient(st), legacyClient(st)
		r := c.post(callWithProgress)
		time.Sleep(2500 * time.Millisecond)
		r.cancel()
		id := r.lastID()
		for what, thief := range map[string]*client{"principal": {st: st, principal: "mallory", header: c.header}, "endpoint": {st: st, view: "server/b", header: c.header}} {
			if got := thief.comesBack(id).wait(); got.code() != 404 {
				t.Errorf("another %s gets %d %s", what, got.code(), got.text())
			}
		}
		stranger := other.comesBack(id)
		unknown := c.comesBack(strings.Replace(id, "-", "x-", 1))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for what, got := range map[string]*response{"another session": stranger, "an unknown event": unknown} {
			if got.over() || got.code() != 200 || len(short(t, got.events())) != 0 {
				t.Errorf("%s gets %d %q", what, got.code(), got.text())
			}
			got.cancel()
		}
		own := c.comesBack(id)
		time.Sleep(1200 * time.Millisecond)
		if got := short(t, own.events()); !slices.Contains(got, "3") {
			t.Errorf("the client itself gets %q", got)
		}
		c.do(http.MethodDelete, "").wait()
		own.wait()
	})
}

// A client that was away before anything told it how to come back, or that takes no streams, cannot; its call goes on
// for the window all the same.
func TestStreamsWithoutAReturn(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no buffer": func(o *Options) { o.Sessions.ResumeBufferBytes = 0 },
		"stateless": func(o *Options) { o.Sessions.Mode = "stateless" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, &backend{tool: steps(2, 10)}, change)
				defer st.stop()
				c := st.client()
				if name != "stateless" {
					c = legacyClient(st)
				}
				r := c.post(callWithProgress).wait()
				wantEvents(t, "the stream", r, "1", "2", "answer")
				if strings.Contains(r.text(), "id: ") || strings.Contains(r.text(), "retry: ") {
					t.Errorf("the stream tells how to come back: %q", r.text())
				}
			})
		})
	}
}

func TestWhatAStreamBeginsWith(t *testing.T) {
	for _, c := range []struct {
		version string
		primed  bool
	}{{wire.Rev20250326, false}, {wire.Rev20250618, false}, {wire.Rev20251125, true}} {
		t.Run(c.version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, &backend{tool: after(10 * time.Second)}, nil)
				defer st.stop()
				cl := st.client().open(c.version)
				call, standing := cl.post(callT), cl.do(http.MethodGet, "")
				time.Sleep(4 * time.Second)
				synctest.Wait()
				for what, r := range map[string]*response{"call": call, "standing stream": standing} {
					primed := strings.HasPrefix(r.text(), "retry: 1000\nid: ") && strings.Contains(r.text(), "\ndata: \n\n")
					comment := strings.HasPrefix(r.text(), ":")
					if primed != c.primed || comment == c.primed {
						t.Errorf("the %s begins with %q", what, r.text())
					}
				}
				call.wait()
				standing.cancel()
			})
		})
	}
}

func TestABatchCanBeFetchedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(10 * time.Second)}, nil)
		defer st.stop()
		c := st.client().open(wire.Rev20250326)
		r := c.post(`[` + callT + `,` + callWithProgress + `,{"jsonrpc":"2.0","id":7,"method":"ping"}]`)
		time.Sleep(time.Second)
		st.b.change()
		time.Sleep(4 * time.Second)
		r.cancel()
		synctest.Wait()
		if len(r.events()) == 0 || r.lastID() == "" {
			t.Fatalf("the stream has no event with an id: %q", r.text())
		}
		got := c.comesBack(r.lastID()).wait().data()
		var answers []json.RawMessage
		if len(got) != 1 || json.Unmarshal([]byte(got[0]), &answers) != nil || len(answers) != 3 {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnAnswerThatIsTooLargeToBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(1, 100_000)}, func(o *Options) { o.Sessions.ResumeBufferBytes = 64 << 10 })
		defer st.stop()
		c := legacyClient(st)
		whole := c.post(callWithProgress).wait()
		wantEvents(t, "who stays", whole, "1", "answer")
		r := c.post(callWithProgress)
		time.Sleep(1500 * time.Millisecond)
		r.cancel()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		again := c.comesBack(r.lastID()).wait()
		wantEvents(t, "who comes back", again, "error")
		if text := again.text(); !strings.Contains(text, "resume_buffer_bytes") || !strings.Contains(text, `"id":"A"`) {
			t.Errorf("the answer is %s", text)
		}
		if st.metric("mcp_proxy_limit_exceeded_total", "limit", count.LimitResume) != 2 {
			t.Error("the bound is not counted")
		}
	})
}

func TestAStandingStreamGoesOnWhereItBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{}
		st := newStage(t, b, nil)
		defer st.stop()
		c := legacyClient(st)
		r := c.do(http.MethodGet, "")
		b.change()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		const changed = "notifications/tools/list_changed"
		wantEvents(t, "first", r, changed)
		start := r.events()[0].id
		// It is back before the old one breaks, and has not read the first announcement.
		again := c.comesBack(start)
		synctest.Wait()
		if !r.over() {
			t.Error("two responses serve one stream")
		}
		wantEvents(t, "again", again, changed)
		b.change()
		time.Sleep(5 * time.Second)
		again.cancel()
		synctest.Wait()
		wantEvents(t, "again, later", again, changed, changed)
		b.change() // while nobody listens
		time.Sleep(5 * time.Second)
		third := c.comesBack(again.lastID())
		synctest.Wait()
		wantEvents(t, "third", third, changed)
		third.cancel()
		if st.metric("mcp_proxy_streams_resumed_total", "kind", "get") != 2 {
			t.Error("the returns are not counted")
		}
	})
}

// Many calls in one session, as a long day brings them, leave no more than its buffer.
func TestALongSessionKeepsNoMoreThanItsBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: steps(1, 10_000)}, func(o *Options) { o.Sessions.ResumeBufferBytes = 64 << 10 })
		defer st.stop()
		c := legacyClient(st)
		for range 300 {
			wantEvents(t, "a call", c.post(callWithProgress).wait(), "1", "answer")
			if n := st.m.shelf.bytes(); n > 64<<10 {
				t.Fatalf("%d bytes are kept", n)
			}
		}
		if n := st.metric("mcp_proxy_limit_exceeded_total", "limit", count.LimitResume); n != 0 {
			t.Errorf("the bound was met %v times although everything arrived", n)
		}
		time.Sleep(sampleWindow + time.Second)
		if n := st.m.shelf.bytes(); n != 0 {
			t.Errorf("%d bytes are kept in the end", n)
		}
	})
}
