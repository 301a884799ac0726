package testmcp

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// web serves a basic server with some more tools and connects a client of that era.
func web(t *testing.T, era Era, opt HTTPOptions, tools ...Tool) (*Client, *HTTPServer) {
	t.Helper()
	s := Basic("web")
	s.Tools = append(s.Tools, tools...)
	h := ServeHTTP(t, s, opt)
	return Connect(t, h.URL, era), h
}

func TestEveryLegacyRevisionIsNegotiated(t *testing.T) {
	h := ServeHTTP(t, Basic("web"), HTTPOptions{})
	for _, rev := range []string{Rev2024, Rev2503, Rev2506, Rev2511, "1999-01-01"} {
		c := NewClient(t, h.URL, Legacy)
		c.Version = rev
		c.Open()
		if want := rev; rev != "1999-01-01" && c.Version != want || rev == "1999-01-01" && c.Version != Rev2511 {
			t.Errorf("asked for %s, got %s", rev, c.Version)
		}
		if got := c.CallTool("echo", `{"text":"`+rev+`"}`).Text(); got != rev {
			t.Errorf("%s: echo gave %q", rev, got)
		}
	}
}

func TestErasAreKeptApart(t *testing.T) {
	legacy, modern := Basic("old"), Basic("new")
	legacy.Era, modern.Era = Legacy, Modern
	old, fresh := ServeHTTP(t, legacy, HTTPOptions{}), ServeHTTP(t, modern, HTTPOptions{})
	if a := Connect(t, old.URL, Modern).Try("server/discover", ""); a.Status != 400 || a.Result() != nil {
		t.Errorf("a legacy server answers discover with %d %s", a.Status, a.Body)
	}
	c := NewClient(t, fresh.URL, Legacy)
	fresh.Rec.Allow(MissingVersion)
	if a := c.Initialize(); a.Code() != codeNoMethod {
		t.Errorf("a modern server answers initialize with %s", a.Raw)
	}
	m := Connect(t, fresh.URL, Modern)
	if a := m.Call("ping", ""); a.Code() != codeNoMethod || a.Status != 404 {
		t.Errorf("a modern server answers ping with %d %s", a.Status, a.Raw)
	}
	fresh.Rec.Allow(RemovedMethod)
	m.Version = "2099-01-01"
	if a := m.Call("tools/list", ""); a.Code() != codeVersion || a.Status != 400 || !slices.Contains(strs(a.Err().At("data", "supported")), Rev2607) {
		t.Errorf("an unknown revision is answered %d %s", a.Status, a.Raw)
	}
}

func strs(list Raw) []string {
	var out []string
	for _, i := range list.Items() {
		out = append(out, i.Str())
	}
	return out
}

func TestPagesAndNames(t *testing.T) {
	s := &Server{Tools: SimpleTools("t", 7), PageSize: 3}
	h := ServeHTTP(t, s, HTTPOptions{})
	for _, era := range []Era{Legacy, Modern} {
		c := Connect(t, h.URL, era)
		if got := c.ToolNames(); len(got) != 7 || got[0] != "t0001" || got[6] != "t0007" {
			t.Errorf("names %q", got)
		}
		if a := c.Call("tools/list", `{"cursor":"other"}`); a.Code() != codeBadParams {
			t.Errorf("a foreign cursor is answered %s", a.Raw)
		}
	}
	if got := h.Rec.Count(Received("tools/list")); got != 8 {
		t.Errorf("%d list requests, want 3 pages and one refusal for each era", got)
	}
}

func TestProgressTurnsAnAnswerIntoAStream(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		c, h := web(t, era, HTTPOptions{})
		if a := c.CallTool("echo", `{"text":"x"}`); a.Header.Get("Content-Type") != "application/json" || a.Before != nil {
			t.Errorf("a plain answer came as %s", a.Header.Get("Content-Type"))
		}
		s := c.Start("tools/call", `{"name":"progress","arguments":{"steps":3,"signal":"go"},"_meta":{"progressToken":"p"}}`)
		first := s.WaitMethod("notifications/progress")
		if first.Params.At("progressToken").Str() != "p" || s.Over() {
			t.Errorf("first progress %s", first.Raw)
		}
		h.Rec.Signal("go")
		if a := s.Final(); a.Text() != "3 steps" || len(a.Before) != 3 {
			t.Errorf("answer %s after %d events", a.Raw, len(a.Before))
		}
		if !s.WaitOver() || s.Err() != nil {
			t.Errorf("the stream did not end in order: %v", s.Err())
		}
	}
}

func TestAskingOverHTTP(t *testing.T) {
	for _, era := range []Era{Legacy, Modern} {
		c, _ := web(t, era, HTTPOptions{})
		c.Answers["elicitation/create"] = func(p Raw) string { return `{"action":"accept","content":{"which":` + string(p.At("message")) + `}}` }
		if got := c.CallTool("elicit", "").Text(); got != `{"action":"accept","content":{"which":"Which?"}}` {
			t.Errorf("got %s", got)
		}
		if asked := c.Asked(); len(asked) != 1 || asked[0].Method != "elicitation/create" {
			t.Errorf("asked %v", asked)
		}
	}
}

func TestCancelByEra(t *testing.T) {
	for era, cause := range map[Era]error{Legacy: ErrCancelled, Modern: ErrStreamClosed} {
		c, h := web(t, era, HTTPOptions{})
		p := c.Begin("tools/call", `{"name":"progress","arguments":{"steps":2,"signal":"never"},"_meta":{"progressToken":1}}`)
		h.Rec.Wait(t, CalledTool("progress"))
		c.Cancel(p.Stream())
		if got := h.Rec.Wait(t, Is(Cancel)); !strings.HasPrefix(got.Text, cause.Error()) {
			t.Errorf("cancel record %v", got)
		}
	}
}

func TestLegacyDisconnectIsNoCancelAndCanBeResumed(t *testing.T) {
	c, h := web(t, Legacy, HTTPOptions{Resumable: true}, SimpleTool("cut", func(c *Call) {
		c.Progress(1, 2, "before")
		c.CutStream()
		if c.Until("go") {
			c.Text("after all")
		}
	}))
	s := c.Start("tools/call", `{"name":"cut","_meta":{"progressToken":1}}`)
	if a := s.Final(); a.Error == nil {
		t.Fatalf("a cut stream answered %s", a.Raw)
	}
	h.Rec.Signal("go")
	again := c.Get(s.LastID())
	again.ID = s.ID
	if got := again.Final().Text(); got != "after all" {
		t.Errorf("resumed: %q", got)
	}
	if h.Rec.Count(Is(Cancel)) != 0 {
		t.Error("a broken connection was taken for a cancel")
	}
}

func TestUnrelatedMessages(t *testing.T) {
	c, h := web(t, Legacy, HTTPOptions{})
	c.CallTool("change", "") // with no stream open yet, so it waits for one
	get := c.Get("")
	get.WaitMethod("notifications/tools/list_changed")
	if names := c.ToolNames(); !slices.Contains(names, "added1") {
		t.Errorf("tools %q", names)
	}
	h.CutStreams()
	if !get.WaitOver() || get.Err() == nil {
		t.Error("the stream was not cut")
	}
	m := Connect(t, h.URL, Modern)
	l := m.Listen(`{"toolsListChanged":true}`)
	ack := l.WaitMethod("notifications/subscriptions/acknowledged")
	if string(ack.meta(metaSub)) != l.ID {
		t.Errorf("acknowledged %s", ack.Raw)
	}
	h.Instance().Notify("notifications/prompts/list_changed", "")
	m.CallTool("change", "")
	if got := l.WaitMethod("notifications/tools/list_changed"); string(got.meta(metaSub)) != l.ID {
		t.Errorf("notification %s", got.Raw)
	}
	if n := len(l.Events()); n != 2 {
		t.Errorf("%d events, want no more than what the filter has", n)
	}
	h.Rec.Signal(EndListens)
	if a := l.Final(); a.Result() == nil {
		t.Errorf("the listen did not end: %v", a.Error)
	}
}

func TestLostSessions(t *testing.T) {
	for name, spelling := range LostSpellings {
		c, h := web(t, Legacy, HTTPOptions{Lost: spelling})
		c.CallTool("echo", "")
		h.ForgetSessions()
		a := c.Try("tools/call", ToolParams("echo", ""))
		status, _, _ := strings.Cut(name, " ")
		if a.Result() != nil || status != strconv.Itoa(a.Status) {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
		if note := h.Rec.Wait(t, Noted(RefusedLost)); note.Method != "tools/call" {
			t.Errorf("%s: note %v", name, note)
		}
		if got := c.Open().CallTool("echo", `{"text":"again"}`).Text(); got != "again" {
			t.Errorf("%s: a new session gave %q", name, got)
		}
	}
}

func TestSessionLives(t *testing.T) {
	c, h := web(t, Legacy, HTTPOptions{LoseAfter: 2})
	var got []int
	for range 3 {
		got = append(got, c.Try("tools/call", ToolParams("echo", "")).Status)
	}
	if !slices.Equal(got, []int{200, 200, 404}) || h.Sessions() != 0 {
		t.Errorf("statuses %v, %d sessions", got, h.Sessions())
	}
	c.Open()
	hang := c.Begin("tools/call", ToolParams("hang", ""))
	h.Rec.Wait(t, CalledTool("hang"))
	if status := c.Delete(); status != http.StatusNoContent {
		t.Errorf("DELETE gives %d", status)
	}
	h.Rec.Wait(t, Is(Deleted))
	if got := h.Rec.Wait(t, Is(Cancel)); got.Text != ErrSessionEnded.Error() {
		t.Errorf("cancel record %v", got)
	}
	if a := hang.Final(); a.Error != ErrNoAnswer {
		t.Errorf("a call of an ended session is answered %s, %v", a.Raw, a.Error)
	}
	before := c.Open().Session
	h.Restart()
	c.Reconnect()
	if a := c.Try("ping", ""); a.Status != 404 {
		t.Errorf("after a restart the session %s is answered %d", before, a.Status)
	}
	h.Stop()
	if a := c.Try("ping", ""); a.Status != 0 || a.Error == nil {
		t.Errorf("a stopped server answers %d", a.Status)
	}
	h.Start()
	c.Session = ""
	c.Reconnect()
	c.Open()
	stateless, s := web(t, Legacy, HTTPOptions{NoSessions: true})
	if stateless.Session != "" || stateless.CallTool("echo", `{"text":"x"}`).Text() != "x" || stateless.Get("").Status != 405 {
		t.Error("a server without sessions does not work without")
	}
	s.Rec.Wait(t, Received("tools/call"))
}

func TestBrokenAnswers(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   func(Answer) bool
	}{
		"status":     {Status(503, "text/plain", "down"), func(a Answer) bool { return a.Status == 503 && string(a.Body) == "down" }},
		"html":       {HTML(500), func(a Answer) bool { return a.Status == 500 && strings.Contains(string(a.Body), "<html>") }},
		"empty":      {Status(202, "", ""), func(a Answer) bool { return a.Status == 202 && len(a.Body) == 0 }},
		"redirect":   {Redirect(307, "/other"), func(a Answer) bool { return a.Status == 307 && a.Header.Get("Location") == "/other" }},
		"reset":      {Reset, func(a Answer) bool { return a.Status == 0 && a.Error != nil }},
		"truncated":  {Truncated("application/json", ok[:20], 100), func(a Answer) bool { return a.Status == 200 && a.Error != nil && len(a.Body) == 20 }},
		"cut chunk":  {CutChunk("application/json", ok[:20]), func(a Answer) bool { return a.Status == 200 && a.Error != nil }},
		"gzip":       {Gzip("application/json", ok), func(a Answer) bool { return a.Header.Get("Content-Encoding") == "gzip" && a.Body[0] == 0x1f }},
		"slowly":     {Slowly("application/json", time.Millisecond, ok[:9], ok[9:]), func(a Answer) bool { return a.Result() != nil }},
		"no answer":  {Events(": nothing\n\n"), func(a Answer) bool { return a.Error == ErrNoAnswer }},
		"half event": {Events("data: " + ok + "\n"), func(a Answer) bool { return a.Error == ErrNoAnswer }},
	} {
		c, _ := web(t, Legacy, HTTPOptions{}, SimpleTool("broken", Responds(tt.answer)))
		if a := c.Try("tools/call", ToolParams("broken", "")); !tt.want(a) {
			t.Errorf("%s: %d %q %v", name, a.Status, a.Body, a.Error)
		}
		if got := c.CallTool("echo", `{"text":"on"}`).Text(); got != "on" {
			t.Errorf("%s: the next call gave %q", name, got)
		}
	}
}

func TestStreamFaults(t *testing.T) {
	c, _ := web(t, Legacy, HTTPOptions{},
		SimpleTool("bytes", func(c *Call) {
			c.StreamBytes(": one\n\n: two\n\n")
			c.StreamBytes("id: 8\ndata: \n\n")
			c.Text("x")
		}),
		SimpleTool("end", (*Call).EndStream))
	s := c.Start("tools/call", ToolParams("bytes", ""))
	if a := s.Final(); a.Text() != "x" || s.Comments() != 2 || s.LastID() != "8" {
		t.Errorf("%s, %d comments, id %q", a.Raw, s.Comments(), s.LastID())
	}
	if a := c.Try("tools/call", ToolParams("end", "")); a.Error != ErrNoAnswer {
		t.Errorf("an ended stream gives %v", a.Error)
	}
	for name, form := range map[string]func(string, []byte) []byte{"crlf": EventEnding("\r\n"), "cr": EventEnding("\r"), "lines": EventLines, "noise": EventAmongNoise} {
		c, _ := web(t, Legacy, HTTPOptions{Answers: AsEvents, Event: form})
		if got := c.CallTool("echo", `{"text":"formed"}`).Text(); got != "formed" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestGetVariants(t *testing.T) {
	for name, tt := range map[string]struct {
		get    http.HandlerFunc
		status int
		over   bool
	}{
		"405": {Status(405, "", ""), 405, true}, "404": {Status(404, "", ""), 404, true}, "500": {HTML(500), 500, true},
		"json": {Status(200, "application/json", `{}`), 200, true}, "closing": {Events(), 200, true}, "hanging": {HoldOpen, 200, false},
	} {
		c, _ := web(t, Legacy, HTTPOptions{Get: tt.get})
		s := c.Get("")
		if tt.over && !s.WaitOver() || s.Status != tt.status || s.Over() != tt.over {
			t.Errorf("%s: %d, over %v", name, s.Status, s.Over())
		}
		s.Close()
	}
}

func TestHooks(t *testing.T) {
	c, h := web(t, Legacy, HTTPOptions{
		Path:     "/final/",
		JSONType: "application/json;charset=utf-8",
		Notified: func(w http.ResponseWriter, r *http.Request) { Status(202, "text/plain; charset=utf-8", "OK")(w, r) },
		Headers:  func(h http.Header, _ *http.Request) { h.Set("X-Seen", "1") },
		Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.URL.Path == "/final" {
				Redirect(308, "/final/")(w, r)
				return true
			}
			return false
		},
	})
	a := c.CallTool("echo", `{"text":"x"}`)
	if a.Header.Get("Content-Type") != "application/json;charset=utf-8" || a.Header.Get("X-Seen") != "1" {
		t.Errorf("headers %v", a.Header)
	}
	c.URL = strings.TrimSuffix(h.URL, "/")
	if a := c.Try("ping", ""); a.Status != 308 {
		t.Errorf("the other path gives %d", a.Status)
	}
	c.URL = h.URL + "nowhere"
	if a := c.Try("ping", ""); a.Status != 404 {
		t.Errorf("a third path gives %d", a.Status)
	}
	if got := h.Rec.Wait(t, Is(Request)); got.Text != "POST /final/" || got.Header.Get("Host") == "" {
		t.Errorf("request record %v", got)
	}
}

func TestEndpointsOfTheOldTransport(t *testing.T) {
	elsewhere := ServeHTTP(t, Basic("other"), HTTPOptions{})
	for name, tt := range map[string]struct {
		endpoint func(string, string) []string
		want     string // beginning of the announced place
	}{
		"relative": {EndpointRelative, "/gw/a/messages?"}, "absolute": {EndpointAbsolute, "http://127.0.0.1:"}, "bare": {EndpointBare, "messages?"},
		"foreign": {EndpointIn(elsewhere.URL), elsewhere.URL}, "unprefixed": {EndpointUnprefixed("/gw/a"), "/messages?"}, "pieces": {EndpointInPieces, "/gw/a/messages?"},
	} {
		h := ServeSSE(t, Basic("old"), SSEOptions{Prefix: "/gw/a", Endpoint: tt.endpoint})
		s := NewClient(t, h.URL, Legacy).Get("")
		e, ok := s.Next()
		if !ok || e.Name != "endpoint" || !strings.HasPrefix(e.Data.String(), tt.want) {
			t.Errorf("%s: %s %s", name, e.Name, e.Data)
		}
		s.Close()
	}
	h := ServeSSE(t, Basic("old"), SSEOptions{Endpoint: EndpointNever})
	s := NewClient(t, h.URL, Legacy).Get("")
	if !s.WaitComments(2) || len(s.Events()) != 0 {
		t.Errorf("never: %d comments, %d events", s.Comments(), len(s.Events()))
	}
	post := NewClient(t, h.URL, Legacy)
	h.Rec.Allow(AcceptHeader)
	if got := post.Initialize().Status; got != 405 {
		t.Errorf("a POST to the stream's path gives %d", got)
	}
}

func TestHeldReading(t *testing.T) {
	c, h := web(t, Legacy, HTTPOptions{})
	c.HoldReading = true
	s := c.Get("")
	h.Instance().Notify("notifications/message", `{"level":"info","data":1}`)
	h.Rec.Wait(t, func(r Record) bool { return r.Kind == Out && r.Method == "notifications/message" })
	if len(s.Events()) != 0 {
		t.Error("a held stream was read")
	}
	s.Resume()
	s.WaitMethod("notifications/message")
}
