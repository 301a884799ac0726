package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const okAnswer = `{"jsonrpc":"2.0","id":"A","result":{"content":[]}}`

func legacyClient(st *stage) *client { return st.client().open(wire.LatestLegacy) }

// The first thing that comes decides between JSON and a stream; if nothing has come for three seconds it is a stream.
func TestWhatTheResponseIs(t *testing.T) {
	withProgress := func(say func(string, string)) string {
		say("notifications/progress", `{"progressToken":TOKEN,"progress":1}`)
		return `"result":{"content":[]}`
	}
	const askProgress = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t","_meta":{"progressToken":9}}}`
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}`
	for _, c := range []struct {
		name, accept string
		tool         func(func(string, string)) string
		request      string
		stream       bool
		data         []string
	}{
		{"an answer at once", "application/json, text/event-stream", quick, callT, false, nil},
		{"an answer after 2 s", "application/json, text/event-stream", after(2 * time.Second), callT, false, nil},
		{"an answer after 4 s", "application/json, text/event-stream", after(4 * time.Second), callT, true, []string{okAnswer}},
		{"progress first", "application/json, text/event-stream", withProgress, askProgress, true, []string{progress, okAnswer}},
		{"only a stream is accepted", "text/event-stream", quick, callT, true, []string{okAnswer}},
		{"only JSON is accepted", "application/json", after(time.Minute), callT, false, nil},
		{"only JSON is accepted, with progress", "application/json", withProgress, askProgress, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, &backend{tool: c.tool}, nil)
				defer st.stop()
				r := legacyClient(st).with("Accept", c.accept).post(c.request).wait()
				if r.code() != 200 {
					t.Fatalf("%d %s", r.code(), r.text())
				}
				if !c.stream {
					if r.kind() != "application/json" || r.text() != okAnswer || r.sent.Get("Content-Length") != fmt.Sprint(len(okAnswer)) {
						t.Errorf("%v %s", r.sent, r.text())
					}
				} else if got := r.data(); r.kind() != "text/event-stream" || strings.Join(got, "|") != strings.Join(c.data, "|") {
					t.Errorf("%s %q", r.kind(), got)
				}
				if dropped := st.metric("mcp_proxy_dropped_total", "what", count.DropNotification); (dropped == 1) != strings.HasSuffix(c.name, "with progress") {
					t.Errorf("%v notifications are dropped", dropped)
				}
				if !r.deadline.IsZero() {
					t.Error("the deadline of the writes meets the next request of the connection")
				}
			})
		})
	}
}

func TestAStreamIsKeptAlive(t *testing.T) {
	for _, version := range []string{wire.Rev20250618, wire.Rev20251125} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, &backend{tool: after(100 * time.Second)}, nil)
			defer st.stop()
			r := st.client().open(version).post(callT)
			pass(3*time.Second - time.Millisecond)
			if synctest.Wait(); r.code() != 0 {
				t.Errorf("before its time it is %d %q", r.code(), r.text())
			}
			pass(time.Millisecond)
			if synctest.Wait(); r.code() != 200 || r.kind() != "text/event-stream" || r.text() == "" {
				t.Errorf("after 3 s it is %d %s %q", r.code(), r.kind(), r.text())
			}
			if st.metric("mcp_proxy_streams", "kind", "post") != 1 {
				t.Error("the stream is not counted")
			}
			before := r.comments()
			pass(61 * time.Second)
			if synctest.Wait(); r.comments()-before != 4 {
				t.Errorf("%d comments within a minute", r.comments()-before)
			}
			r.wait()
			if got := r.data(); len(got) == 0 || got[len(got)-1] != okAnswer {
				t.Errorf("the events are %q", got)
			}
			for _, h := range []string{"no-cache, no-transform", "no"} {
				if r.sent.Get("Cache-Control") != h && r.sent.Get("X-Accel-Buffering") != h {
					t.Errorf("the headers are %v", r.sent)
				}
			}
			if st.metric("mcp_proxy_streams", "kind", "post") != 0 {
				t.Error("the stream is counted still")
			}
		})
	}
}

// A legacy client that is cut off may come back; only when it does not is the call cancelled.
func TestALegacyClientThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		r := legacyClient(st).post(callT)
		pass(time.Second)
		r.cancel()
		pass(29 * time.Second)
		if synctest.Wait(); b.received("notifications/cancelled") != 0 {
			t.Error("the call is cancelled within the window")
		}
		pass(2 * time.Second)
		synctest.Wait()
		if b.received("notifications/cancelled") != 1 || !r.over() {
			t.Error("the call is not cancelled after the window")
		}
		if st.metric("mcp_proxy_requests_total", "upstream", "b", "method", "tools/call", "outcome", "client_gone") != 1 {
			t.Error("it is counted as something else")
		}
	})
}

func TestALegacyClientThatGoesBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: after(10 * time.Second)}
		st := newStage(t, b, nil)
		defer st.stop()
		r := legacyClient(st).post(callT)
		pass(5 * time.Second)
		r.cancel()
		pass(time.Minute)
		synctest.Wait()
		if b.received("notifications/cancelled") != 0 || st.metric("mcp_proxy_requests_total", "upstream", "b", "method", "tools/call", "outcome", "ok") != 1 {
			t.Error("the call did not run to its end")
		}
	})
}

// For a modern client the closed response is the cancel.
func TestAModernClientThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: never}
		st := newStage(t, b, nil)
		defer st.stop()
		r := st.client().modern("tools/call", "t").post(callModern)
		pass(time.Second)
		r.cancel()
		synctest.Wait()
		if b.received("notifications/cancelled") != 1 || !r.over() || r.text() != "" {
			t.Errorf("cancelled %d times, over %v, %q", b.received("notifications/cancelled"), r.over(), r.text())
		}
		if st.metric("mcp_proxy_requests_total", "upstream", "b", "method", "tools/call", "outcome", "cancelled") != 1 {
			t.Error("it is counted as something else")
		}
	})
}

// A cancelled request gets no answer, whatever the client takes; HTTP must say something all the same.
func TestACancelledRequest(t *testing.T) {
	for accept, want := range map[string]string{"application/json, text/event-stream": "", "text/event-stream": "", "application/json": "the request was cancelled"} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{tool: never}
			st := newStage(t, b, nil)
			defer st.stop()
			c := legacyClient(st).with("Accept", accept)
			r := c.post(callT)
			pass(time.Second)
			n := c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"A"}}`).wait()
			r.wait()
			synctest.Wait()
			if n.code() != 202 || b.received("notifications/cancelled") != 1 {
				t.Errorf("%s: the cancel gives %d, the server hears %d", accept, n.code(), b.received("notifications/cancelled"))
			}
			if len(r.data()) != 0 || want != "" && !strings.Contains(r.text(), want) || r.code() != 200 {
				t.Errorf("%s: %d %s", accept, r.code(), r.text())
			}
		})
	}
}

// Where a client gives two requests one id, nobody can tell which is meant: neither is touched.
func TestCancelsThatFitTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &backend{tool: after(20 * time.Second)}
		st := newStage(t, b, nil)
		defer st.stop()
		c := legacyClient(st)
		one, two := c.post(callT), c.post(callT)
		pass(time.Second)
		for _, id := range []string{`"A"`, `"\u0041"`, `"B"`, `null`, `{}`} {
			c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`).wait()
		}
		if one.wait(); b.received("notifications/cancelled") != 0 {
			t.Error("a call was cancelled")
		}
		two.wait()
		third := c.post(callT)
		pass(time.Second)
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0041"}}`).wait()
		third.wait()
		synctest.Wait()
		if b.received("notifications/cancelled") != 1 {
			t.Error("the only one was not cancelled")
		}
	})
}

// A client that does not read is given up; the call goes on for one that comes back.
func TestAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{tool: after(time.Minute)}, nil)
		defer st.stop()
		r := legacyClient(st).post(callT)
		pass(5 * time.Second)
		synctest.Wait()
		r.breaks()
		r.wait()
		if n := st.metric("mcp_proxy_dropped_total", "what", count.DropClientSlow); n != 1 {
			t.Errorf("%v writes are counted as failed", n)
		}
		if st.metric("mcp_proxy_streams", "kind", "post") != 0 {
			t.Error("the stream is counted still")
		}
	})
}
