package door

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// at opens a session of this revision.
func at(t *testing.T, url, version string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, url, testmcp.Legacy)
	c.Version = version
	return c.Open()
}

func callOf(c *testmcp.Client, id, tool, args string) string {
	return c.Body(id, "tools/call", testmcp.ToolParams(tool, args))
}

// answersByID gives the answers in an array, or in the events of a stream, by their raw ids.
func answersByID(t *testing.T, s *testmcp.Stream) map[string]testmcp.Message {
	t.Helper()
	s.WaitOver()
	frames := testmcp.Raw(s.Final().Body).Items()
	for _, e := range s.Events() {
		if items := e.Data.Items(); items != nil {
			frames = append(frames, items...)
		} else {
			frames = append(frames, e.Data)
		}
	}
	out := map[string]testmcp.Message{}
	for _, f := range frames {
		if f.Has("method") {
			continue
		}
		id := string(f.At("id"))
		if out[id].Raw != nil {
			t.Errorf("the id %s is answered twice", id)
		}
		out[id] = testmcp.Message{Raw: f, ID: f.At("id")}
	}
	return out
}

// TestBatchesOfTheRevisionThatHasThemAreServedWhole: every element meets what it would meet alone.
func TestBatchesOfTheRevisionThatHasThemAreServedWhole(t *testing.T) {
	t.Parallel()
	recs := []*testmcp.Recorder{testmcp.NewRecorder(t), testmcp.NewRecorder(t)}
	policy := `"tool_policy":{"deny":["secret"]}`
	p := start(t, "", map[string]string{
		"a": recs[0].Entry("door", nil, policy),
		"b": testmcp.ServeHTTP(t, server(nil), testmcp.HTTPOptions{Recorder: recs[1]}).Entry(policy),
	})
	c := at(t, p.URL, testmcp.Rev2503)
	batch := []string{
		callOf(c, `1`, "a__echo", `{"text":"from a"}`),
		callOf(c, `"1"`, "b__echo", `{"text":"from b"}`),
		c.Body("", "notifications/initialized", ""),
		callOf(c, `2`, "a__secret", ""),
		callOf(c, `3`, "nobody__has_this", ""),
		c.Body(`4`, "ping", ""),
		c.Body(`5`, "tools/list", ""),
		c.Body(`6`, "no/such", ""),
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__echo","Name":"a__secret"}}`,
		c.Body(`8`, "initialize", `{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`),
		`{"jsonrpc":"2.0","id":99,"result":{}}`,
		callOf(c, `9`, "b__refuse", ""),
	}
	s := c.Do(http.MethodPost, " \r\n\t["+strings.Join(batch, " ,\n")+"]\n", c.HeadersFor("", ""))
	got := answersByID(t, s)
	if s.Status != 200 || s.Header.Get("Content-Type") != "application/json" || len(got) != 10 {
		t.Errorf("HTTP %d, %q, %d answers, want 10: %s", s.Status, s.Header.Get("Content-Type"), len(got), s.Final().Body)
	}
	for id, text := range map[string]string{`1`: "from a", `"1"`: "from b"} {
		if r := got[id].Result().At("content", 0, "text").Str(); r != text {
			t.Errorf("the request %s was answered %s", id, got[id].Raw)
		}
	}
	for id, code := range map[string]int{`2`: codeInvalidParams, `3`: codeInvalidParams, `6`: codeNoMethod, `7`: codeInvalidRequest, `8`: codeInvalidRequest, `9`: -32000} {
		if n := got[id].Err().At("code").Int(); n != code {
			t.Errorf("the request %s was answered with code %d, want %d: %s", id, n, code, got[id].Raw)
		}
	}
	if len(got[`5`].Result().At("tools").Items()) == 0 || got[`4`].Result() == nil {
		t.Errorf("ping and list were answered %s and %s", got[`4`].Raw, got[`5`].Raw)
	}
	if n := recs[0].Count(testmcp.CalledTool("secret")); n != 0 {
		t.Error("a denied tool was called from a batch")
	}
	m := p.Metrics()
	for upstream, outcome := range map[string]string{"a": "ok", "b": "rpc_error", "_proxy": "invalid"} {
		if m.Sum("mcp_proxy_requests_total", "upstream", upstream, "outcome", outcome) == 0 {
			t.Errorf("no request of %s is counted as %s", upstream, outcome)
		}
	}
}

// TestBatchWithProgressBecomesAStream: progress goes out at once, not with the answers.
func TestBatchWithProgressBecomesAStream(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := at(t, p.URL, testmcp.Rev2503)
	s := c.Batch(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"up__says","arguments":{"text":"x","steps":2,"signal":"go"}}}`,
		callOf(c, `2`, "up__echo", `{"text":"y"}`))
	if !isStream(s.Header) {
		t.Fatalf("HTTP %d, %q", s.Status, s.Header.Get("Content-Type"))
	}
	if m := s.WaitMethod("notifications/progress"); m.Params.At("progressToken").Str() != "p" {
		t.Errorf("the progress is %s", m.Raw)
	}
	rec.Signal("go")
	got := answersByID(t, s)
	if len(got) != 2 || got["1"].Result() == nil || got["2"].Result() == nil {
		t.Errorf("the answers are %v", got)
	}
}

// TestBatchesOfNotificationsAreAccepted: nothing is left to be answered.
func TestBatchesOfNotificationsAreAccepted(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	c := at(t, p.URL, testmcp.Rev2503)
	wantEmpty202(t, c.Batch(c.Body("", "notifications/initialized", ""), `{"jsonrpc":"2.0","id":1,"result":{}}`).Final())
}

// TestOneCancelledRequestOfABatchLeavesTheOthers: it gets no answer, and the array holds the rest.
func TestOneCancelledRequestOfABatchLeavesTheOthers(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := at(t, p.URL, testmcp.Rev2503)
	begin := func(bodies ...string) <-chan *testmcp.Stream {
		out := make(chan *testmcp.Stream, 1)
		go func() { out <- c.Batch(bodies...) }()
		return out
	}
	running := begin(callOf(c, `1`, "up__hold", `{"text":"one","signal":"never"}`), callOf(c, `2`, "up__hold", `{"text":"two","signal":"go"}`))
	rec.Wait(t, testmcp.Noted("holding one"))
	rec.Wait(t, testmcp.Noted("holding two"))
	c.CancelID("1")
	rec.Wait(t, testmcp.Is(testmcp.Cancel))
	rec.Signal("go")
	if got := answersByID(t, <-running); len(got) != 1 || got["2"].Result() == nil {
		t.Errorf("the answers are %v, want that of request 2", got)
	}
	// Where all are cancelled there is no answer at all; an empty array would be no message.
	running = begin(callOf(c, `3`, "up__hold", `{"text":"three","signal":"never"}`))
	rec.Wait(t, testmcp.Noted("holding three"))
	c.CancelID("3")
	s := <-running
	if got := answersByID(t, s); len(got) != 0 || string(s.Final().Body) == "[]" || len(s.Events()) != 0 {
		t.Errorf("a batch without answers left: HTTP %d %q, %v", s.Status, s.Final().Body, s.Events())
	}
}

// TestBatchWhoseClientIsGoneIsCancelledAfterTheWindow: as a single request is.
func TestBatchWhoseClientIsGoneIsCancelledAfterTheWindow(t *testing.T) {
	t.Parallel()
	p, rec := one(t, `{"sessions":{"resume_window":"100ms"},"stream_after":"50ms"}`)
	c := at(t, p.URL, testmcp.Rev2503)
	s := c.Batch(callOf(c, `1`, "up__hang", ""), callOf(c, `2`, "up__hang", ""))
	rec.WaitN(t, 2, testmcp.CalledTool("hang"))
	s.Close()
	rec.WaitN(t, 2, testmcp.Is(testmcp.Cancel))
	testmcp.Eventually(t, "two cancelled calls in the metrics", func() bool {
		return p.Metrics().Sum("mcp_proxy_cancellations_total", "cause", "client_gone") == 2
	})
}

// TestBatchesThatAreRefused: by revision, by size, by shape. None of their calls may reach an upstream.
func TestBatchesThatAreRefused(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	opened := map[string]*testmcp.Client{testmcp.Rev2607: p.Client(testmcp.Modern)}
	for _, v := range []string{testmcp.Rev2503, testmcp.Rev2506, testmcp.Rev2511} {
		opened[v] = at(t, p.URL, v)
	}
	echo := callOf(opened[testmcp.Rev2511], "1", "up__echo", "")
	modern := callOf(opened[testmcp.Rev2607], "1", "up__echo", "")
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	type body struct {
		text string
		code int
	}
	bad := func(text string) body { return body{text, codeInvalidRequest} }
	broken := func(text string) body { return body{text, codeParse} }
	every := []body{bad(`[` + echo + `,` + echo + `]`), bad(`[` + echo + `]`), bad("\n\t [" + echo + "]"), bad(`[]`)}
	tests := map[string][]body{
		testmcp.Rev2503: {bad(`[]`), bad(` [ ] `), bad(`[1]`), bad(`["a"]`), bad(`[null]`), bad(`[[` + echo + `]]`), bad(`[` + echo + `,1]`),
			bad(`[` + strings.TrimSuffix(strings.Repeat(echo+",", 10_000), ",") + `]`),
			broken(`[` + echo), broken(`[` + echo + `]]`), broken(`[` + echo + `,]`)},
		testmcp.Rev2506: every,
		testmcp.Rev2511: every,
		testmcp.Rev2607: append(slices.Clone(every), bad(`[`+modern+`]`)),
	}
	for version, bodies := range tests {
		c := opened[version]
		for i, b := range bodies {
			t.Run(fmt.Sprintf("%s %d %.20s", version, i, b.text), func(t *testing.T) {
				wantRefusal(t, post(c, b.text, "tools/call", testmcp.ToolParams("up__echo", "")), 400, b.code, "null")
			})
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_limit_exceeded_total", "limit", "batch"); n != 1 {
		t.Errorf("%v batches are counted as too long, want 1", n)
	}
	t.Run("no session", func(t *testing.T) {
		c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
		for _, body := range []string{`[` + initialize + `]`, `[` + initialize + `,` + echo + `]`, `[` + echo + `]`, `[` + modern + `]`, `[]`} {
			a := post(c, body, "", "")
			wantRefusal(t, a, 400, codeInvalidRequest, "null")
			if a.Header.Get("Mcp-Session-Id") != "" {
				t.Error("a batch has opened a session")
			}
		}
	})
	if n := rec.Count(testmcp.Received("tools/call")); n != 0 {
		t.Errorf("%d calls of refused batches reached the upstream", n)
	}
}

// TestStatelessRequestsInABatchAreRefused: they would get past the checks of their headers.
func TestStatelessRequestsInABatchAreRefused(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := at(t, p.URL, testmcp.Rev2503)
	modern := p.Client(testmcp.Modern)
	got := answersByID(t, c.Batch(callOf(modern, "1", "up__count", ""), callOf(c, "2", "up__echo", `{"text":"x"}`)))
	if code := got["1"].Err().At("code").Int(); code != codeInvalidRequest {
		t.Errorf("the stateless request was answered %s", got["1"].Raw)
	}
	if got["2"].Result() == nil {
		t.Errorf("the other request was answered %s", got["2"].Raw)
	}
	if n := rec.Count(testmcp.CalledTool("count")); n != 0 {
		t.Error("the stateless request reached the upstream")
	}
}
