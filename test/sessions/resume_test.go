package sessions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The client's connection breaks in the middle of a call, as when a balancer closes it or a computer changes networks. It
// can come back whatever its server speaks.
func TestACutConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"legacy", "modern"} {
		p, rec := start(t, `{"keep_alive":"10m"}`, `"protocol":"`+protocol+`"`) // so that nothing hides a silence
		for _, version := range revisions {
			for _, back := range []string{"before the answer", "after the answer"} {
				t.Run(protocol+" server, "+version+", "+back, func(t *testing.T) { cut(t, p, rec, version, back) })
			}
		}
		if n := p.Metrics().Sum("mcp_proxy_streams_resumed_total", "kind", "post"); int(n) != 2*len(revisions) {
			t.Errorf("%s server: %v returns are counted", protocol, n)
		}
		if n := rec.Count(testmcp.Is(testmcp.Cancel)); n != 0 {
			t.Errorf("%s server: %d calls were cancelled", protocol, n)
		}
	}
}

// cut breaks the connection after the third of four steps, and lets the client come back.
func cut(t *testing.T, p *testmcp.Proxy, rec *testmcp.Recorder, version, back string) {
	signal := version + back
	relay := testmcp.StartRelay(t, strings.TrimPrefix(p.Base, "http://"), 0)
	c := speaking(t, relay.Through(p.URL), version)
	held := c.Start("tools/call", withToken("up__progress", fmt.Sprintf(`{"steps":4,"signal":%q}`, signal)))
	progressed(held, "3")
	relay.Cut()
	if !held.WaitOver() || held.LastID() == "" {
		t.Fatalf("the stream is not cut, or has no ids: %v", said(held.Events()))
	}
	calls := func() float64 {
		return p.Metrics().Sum("mcp_proxy_requests_total", "upstream", "up", "method", "tools/call", "outcome", "ok")
	}
	if back == "after the answer" {
		before := calls()
		rec.Signal(signal)
		testmcp.Eventually(t, "answer", func() bool { return calls() == before+1 })
	}
	c.Reconnect()
	again := c.Get(held.LastID())
	if back == "before the answer" {
		rec.Signal(signal)
	}
	answer := again.WaitEvent(isAnswer)
	if !again.WaitOver() {
		t.Error("the stream is open after its answer")
	}
	if got := append(said(held.Events()), said(again.Events())...); !slices.Equal(got, []string{"1", "2", "3", "4", "answer"}) {
		t.Errorf("the client has heard %q", got)
	}
	if m := answer.Message(); string(m.ID) != held.ID || m.Result().At("content", 0, "text").Str() != "4 steps" {
		t.Errorf("the answer is %s", answer.Data)
	}
	echoes(t, c, "the session afterwards")
}

// A silent call is told about at its beginning, or nobody could come back to it.
func TestASilentCallCanBeComeBackTo(t *testing.T) {
	t.Parallel()
	p, rec := start(t, `{"stream_after":"20ms","keep_alive":"100ms"}`)
	relay := testmcp.StartRelay(t, strings.TrimPrefix(p.Base, "http://"), 0)
	c := speaking(t, relay.Through(p.URL), testmcp.Rev2511)
	held := c.Start("tools/call", testmcp.ToolParams("up__wait", `{"signal":"go"}`))
	first := held.WaitEvent(func(e testmcp.Event) bool { return e.HasID })
	if len(first.Data) != 0 || first.Retry == "" {
		t.Errorf("the stream begins with %+v", first)
	}
	relay.Cut()
	held.WaitOver()
	c.Reconnect()
	again := c.Get(first.ID)
	if !again.WaitComments(4) || again.Over() { // the first says that the client is back
		t.Errorf("the stream that the client is back on shows %d signs of life", again.Comments())
	}
	rec.Signal("go")
	if text := again.Final().Text(); text != "waited" {
		t.Errorf("the answer is %q", text)
	}
}

func TestAQuestionComesOnTheStreamThatTheClientIsBackOn(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("asker", nil)}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	for _, back := range []string{"before the question", "after the question"} {
		t.Run(back, func(t *testing.T) {
			relay := testmcp.StartRelay(t, strings.TrimPrefix(p.Base, "http://"), 0)
			c := speaking(t, relay.Through(p.URL), testmcp.Rev2511, answering)
			held := c.Start("tools/call", withToken("up__later", fmt.Sprintf(`{"signal":%q}`, back)))
			progressed(held, "1")
			relay.Cut()
			held.WaitOver()
			if back == "after the question" {
				rec.Signal(back)
				rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Out && r.Method == "elicitation/create" })
			}
			c.Reconnect()
			again := c.Get(held.LastID())
			rec.Signal(back)
			a := again.Final()
			if !testmcp.Raw(a.Text()).Has("content", "which") {
				t.Errorf("the answer is %s", a.Raw)
			}
			if got := said(again.Events()); !slices.Equal(got, []string{"elicitation/create", "answer"}) {
				t.Errorf("the stream carries %q", got)
			}
		})
	}
}

func TestNobodyElseComesBackToAStream(t *testing.T) {
	t.Parallel()
	settings := `{"auth":{"tokens":[{"name":"alice","token":"alices"},{"name":"bob","token":"bobs"}]}}`
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config(settings, map[string]string{"up": rec.Entry("basic", nil)}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	alice, bob := speaking(t, p.URL, testmcp.Rev2511, token("alices")), speaking(t, p.URL, testmcp.Rev2511, token("bobs"))
	held := alice.Start("tools/call", withToken("up__progress", `{"steps":2,"signal":"go"}`))
	progressed(held, "1")
	id := held.LastID()
	held.Close()

	own := bob.Get(id) // in his own session the id means nothing
	bob.Session = alice.Session
	for what, code := range map[string]int{"GET": bob.Get(id).Status, "POST": status(bob), "DELETE": bob.Delete()} {
		if code != http.StatusNotFound {
			t.Errorf("%s with the session of somebody else: HTTP %d", what, code)
		}
	}
	alice.URL = p.Server("up")
	if code := alice.Get(id).Status; code != http.StatusNotFound {
		t.Errorf("at another endpoint: HTTP %d", code)
	}
	alice.URL = p.URL
	again := alice.Get(id)
	rec.Signal("go")
	if text := again.Final().Text(); text != "2 steps" {
		t.Errorf("alice gets %q", text)
	}
	if got := said(own.Events()); len(got) != 0 {
		t.Errorf("bob gets %q", got)
	}
	if line := p.WaitLog("asked for by somebody else"); strings.Contains(line, alice.Session) {
		t.Error("the log shows the id")
	}
}

func TestACallWhoseClientStaysAwayEnds(t *testing.T) {
	t.Parallel()
	p, rec := start(t, `{"sessions":{"resume_window":"300ms"}}`)
	c := p.Client(testmcp.Legacy)
	held := c.Start("tools/call", withToken("up__progress", `{"steps":2,"signal":"never"}`))
	progressed(held, "1")
	id := held.LastID()
	held.Close()
	rec.Wait(t, testmcp.Is(testmcp.Cancel))
	testmcp.Eventually(t, "end of the call", func() bool {
		m := p.Metrics()
		return m.Sum("mcp_proxy_requests_total", "upstream", "up", "outcome", "client_gone") == 1 && m.Sum("mcp_proxy_resume_buffer_bytes") == 0
	})
	late := c.Get(id) // it begins as a stream for news
	if first, ok := late.Next(); !ok || len(first.Data) != 0 || late.Status != http.StatusOK {
		t.Errorf("HTTP %d, %+v", late.Status, first)
	}
	echoes(t, c, "the session afterwards")
}
