package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func isGET(r testmcp.Record) bool {
	return r.Kind == testmcp.Request && strings.HasPrefix(r.Text, "GET ")
}

// A server without a standing stream says so with one status or another. It is asked for it once, and serves all the same.
func TestServersWithoutAStandingStreamAreAskedOnce(t *testing.T) {
	t.Parallel()
	refusals := map[string]struct {
		code       int
		kind, body string
	}{
		"not-allowed":    {405, "", ""},
		"not-found":      {404, "text/plain", "no"},
		"bad":            {400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`},
		"not-acceptable": {406, "", ""},
		"gone":           {410, "", ""},
		"json":           {200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`},
		"page":           {200, "text/html", "<html></html>"},
		"forbidden":      {403, "", ""},
		"error":          {500, "text/plain", "oops"},
		"not-there":      {501, "", ""},
	}
	servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
	for name, r := range refusals {
		h := testmcp.ServeHTTP(t, of(testmcp.Legacy), testmcp.HTTPOptions{Get: testmcp.Status(r.code, r.kind, r.body)})
		servers[name], recs[name] = h.Entry(), h.Rec
	}
	p := start(t, "", servers)
	for name := range refusals {
		recs[name].Wait(t, isGET)
		for _, era := range eras {
			for range 3 {
				works(t, p.Client(era), name)
			}
		}
		if n := recs[name].Count(isGET); n != 1 {
			t.Errorf("%s: asked for a stream %d times", name, n)
		}
		if n := recs[name].Count(testmcp.Received("initialize")); n != 1 {
			t.Errorf("%s: %d handshakes", name, n)
		}
	}
	if lines := strings.Join(p.Log(), "\n"); strings.Contains(lines, `"level":"warn"`) || strings.Contains(lines, `"level":"error"`) {
		t.Error("the log complains of servers that do as they may")
	}
}

// A standing stream that ends again and again costs only itself.
func TestAStandingStreamThatEndsCostsOnlyItself(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, of(testmcp.Legacy), testmcp.HTTPOptions{Get: testmcp.Events("")})
	p := start(t, "", map[string]string{"web": h.Entry()})
	h.Rec.WaitN(t, 3, isGET) // it is tried again
	for _, era := range eras {
		works(t, p.Client(era), "web")
	}
	gets := h.Rec.Find(isGET)
	for i := 1; i < len(gets); i++ {
		if pause := gets[i].Time.Sub(gets[i-1].Time).Seconds(); pause < 0.9 {
			t.Errorf("the stream is asked for again after %v s", pause)
		}
	}
	if n := h.Rec.Count(testmcp.Received("initialize")); n != 1 {
		t.Errorf("%d handshakes", n)
	}
}

// breaking is a server whose call goes on while its stream is cut.
func breaking() *testmcp.Server {
	s := of(testmcp.Legacy)
	s.Tools = append(s.Tools, testmcp.SimpleTool("order", func(c *testmcp.Call) {
		c.Note("ordered")
		if c.Args("progress").Int() > 0 {
			c.Progress(1, 2, "ordering")
		}
		c.CutStream()
		if c.Until("go on") {
			c.Progress(2, 2, "ordered")
			c.Text("done")
		}
	}))
	return s
}

// The stream of a call breaks in the middle. Where the server has given an event id, also one without a message, the answer
// is fetched from there; the call runs once.
func TestABrokenStreamIsTakenUpWhereItBroke(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, breaking(), testmcp.HTTPOptions{Resumable: true, Answers: testmcp.AsEvents})
	p := start(t, "", map[string]string{"web": h.Entry()})
	calls := 0
	for _, era := range eras {
		for _, progress := range []string{"0", "1"} {
			calls++
			call := p.Client(era).Begin("tools/call", `{"name":"web__order","arguments":{"progress":`+progress+`},"_meta":{"progressToken":"p"}}`)
			resumed := h.Rec.WaitN(t, calls, func(r testmcp.Record) bool { return isGET(r) && r.Header.Get("Last-Event-Id") != "" })
			if id := resumed[calls-1].Header.Get("Last-Event-Id"); id == "" {
				t.Error("the stream is taken up without an id")
			}
			h.Rec.Signal("go on")
			if a := call.Final(); a.Text() != "done" {
				t.Errorf("the call gives %s %v", a.Raw, a.Error)
			}
		}
	}
	if n := h.Rec.Count(testmcp.Noted("ordered")); n != calls {
		t.Errorf("%d orders for %d calls", n, calls)
	}
}

// Without an event id nobody can tell what became of the call, and it is not repeated.
func TestABrokenStreamWithoutIDsIsUncertain(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, breaking(), testmcp.HTTPOptions{Answers: testmcp.AsEvents})
	p := start(t, "", map[string]string{"web": h.Entry()})
	for _, era := range eras {
		a := p.Client(era).CallTool("web__order", "")
		if a.Err().At("data", "reason").Str() != "uncertain" || !strings.HasPrefix(a.Err().At("message").Str(), "web::order: ") {
			t.Errorf("the call gives %s", a.Raw)
		}
	}
	if n := h.Rec.Count(testmcp.Noted("ordered")); n != len(eras) {
		t.Errorf("%d orders for %d calls", n, len(eras))
	}
	h.Rec.Signal("go on")
}

// A server of the older transport that never says where to post holds up nobody, and the status says what is missing.
func TestAStreamThatNeverSaysWhereToPost(t *testing.T) {
	t.Parallel()
	other := testmcp.ServeHTTP(t, of(testmcp.Both), testmcp.HTTPOptions{})
	servers := map[string]string{"other": other.Entry()}
	for name, announce := range map[string]func(string, string) []string{
		"silent": testmcp.EndpointNever,
		"early":  func(string, string) []string { return []string{"event: message\ndata: {}\n\n", ": ping\n\n"} },
	} {
		servers[name] = testmcp.ServeSSE(t, of(testmcp.Legacy), testmcp.SSEOptions{Endpoint: announce}).Entry(`"type":"sse"`, `"connect_timeout":"500ms"`)
	}
	p := start(t, `{"startup_grace":"100ms"}`, servers)
	p.WaitTool("other__echo")
	for _, era := range eras {
		works(t, p.Client(era), "other")
	}
	for _, name := range []string{"silent", "early"} {
		testmcp.Eventually(t, "reason why "+name+" does not start", func() bool { return strings.Contains(why(p, name), "endpoint") })
	}
}

// A gateway hides a part of the path from the server, which then announces an address that leads nowhere. The error names
// both, and the configuration can say where to post.
func TestAnEndpointBehindAPrefix(t *testing.T) {
	t.Parallel()
	const prefix = "/gw/a"
	serve := func(announce func(string, string) []string, more ...string) string {
		h := testmcp.ServeSSE(t, of(testmcp.Legacy), testmcp.SSEOptions{Prefix: prefix, Endpoint: announce})
		for i := range more {
			more[i] = strings.ReplaceAll(more[i], "BASE", strings.TrimSuffix(h.URL, "/sse"))
		}
		return h.Entry(append(more, `"type":"sse"`)...)
	}
	p := start(t, `{"startup_grace":"1s"}`, map[string]string{
		"relative": serve(testmcp.EndpointRelative), "absolute": serve(testmcp.EndpointAbsolute), "bare": serve(testmcp.EndpointBare),
		"pieces": serve(testmcp.EndpointInPieces), "hidden": serve(testmcp.EndpointUnprefixed(prefix)),
		"told": serve(testmcp.EndpointUnprefixed(prefix), `"message_url":"/gw/a/messages"`), "told-whole": serve(testmcp.EndpointIn("http://192.0.2.1"), `"message_url":"BASE/messages"`),
		"told-bare": serve(testmcp.EndpointUnprefixed(prefix), `"message_url":"messages"`),
	})
	for _, era := range eras {
		for _, name := range []string{"relative", "absolute", "bare", "pieces", "told", "told-whole", "told-bare"} {
			p.WaitTool(name + "__echo")
			works(t, p.Client(era), name)
		}
	}
	testmcp.Eventually(t, "both addresses in the reason", func() bool {
		text := why(p, "hidden")
		return strings.Contains(text, "posting to /messages,") && strings.Contains(text, prefix+"/sse") && strings.Contains(text, "message_url")
	})
}

// Limits are for connecting and for calls, none is for the life of a stream.
func TestLongStreamsAreCutByNothing(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeHTTP(t, of(testmcp.Legacy), testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"web": h.Entry(`"connect_timeout":"2s"`, `"call_timeout":"20s"`)})
	c := p.Client(testmcp.Legacy)
	works(t, c, "web")
	h.Rec.Wait(t, isGET)
	held := c.Start("tools/call", `{"name":"web__progress","arguments":{"steps":4,"signal":"go"},"_meta":{"progressToken":"p"}}`)
	first := held.WaitMethod("notifications/progress")
	<-time.After(2500 * time.Millisecond) // longer than any limit that could be meant for connecting
	h.Rec.Signal("go")
	if a := held.Final(); a.Text() != "4 steps" {
		t.Errorf("after %s the call gives %s", first.Params, a.Raw)
	}
	h.Instance().SetTools(testmcp.SimpleTool("fresh", nil))
	h.Instance().Notify("notifications/tools/list_changed", "") // on the standing stream
	testmcp.Eventually(t, "the change", func() bool { return slices.Contains(c.ToolNames(), "web__fresh") })
	if n := len(h.Rec.Find(isGET)); n != 1 {
		t.Errorf("the standing stream was opened %d times", n)
	}
}
