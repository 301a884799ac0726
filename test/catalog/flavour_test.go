package catalog

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestTheFlavourOfHTTPIsFoundOutWhereItIsNotSaid(t *testing.T) {
	t.Parallel()
	old := testmcp.ServeSSE(t, testmcp.Basic("old"), testmcp.SSEOptions{})
	stream := testmcp.ServeHTTP(t, testmcp.Basic("stream"), testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"old": old.Entry(), "stream": stream.Entry()}))
	for _, name := range []string{"old__echo", "stream__echo"} {
		if text := p.Client(testmcp.Legacy).CallTool(name, `{"text":"hi"}`).Text(); text != "hi" {
			t.Errorf("%s gave %q", name, text)
		}
	}
	posted := func() int {
		return old.Rec.Count(func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "POST /sse" })
	}
	if posted() == 0 {
		t.Error("the newer flavour was not tried first")
	}
	// Once found out it is remembered: a lost stream is opened again without asking anew.
	tries, opened := posted(), func(r testmcp.Record) bool { return r.Kind == testmcp.Request && r.Text == "GET /sse" }
	n := old.Rec.Count(opened)
	old.Restart()
	old.Rec.WaitN(t, n+1, opened)
	testmcp.Eventually(t, "answer after the restart", func() bool {
		return p.Client(testmcp.Legacy).Try("tools/call", testmcp.ToolParams("old__echo", `{"text":"again"}`)).Text() == "again"
	})
	if posted() != tries {
		t.Errorf("the newer flavour was tried %d times more", posted()-tries)
	}
}

func TestAWrongFlavourIsNotGuessedButTold(t *testing.T) {
	t.Parallel()
	old := testmcp.ServeSSE(t, testmcp.Basic("old"), testmcp.SSEOptions{})
	stream := testmcp.ServeHTTP(t, testmcp.Basic("stream"), testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{
		"old": old.Entry(`"type":"http"`), "stream": stream.Entry(`"type":"sse"`), "good": testmcp.NewRecorder(t).Entry("basic", nil),
	}))
	if text := p.Client(testmcp.Modern).CallTool("good__echo", `{"text":"hi"}`).Text(); text != "hi" {
		t.Errorf("the server beside them gave %q", text)
	}
	says := map[string]string{"old": `"type": "sse"`, "stream": `"type": "http"`}
	for _, u := range p.Status().At("upstreams").Items() {
		if want := says[u.At("id").Str()]; want != "" {
			message := u.At("last_error", "message").Str()
			holds(t, "the reason for "+u.At("id").Str(), message, want)
			if u.At("state").Str() == "ready" {
				t.Errorf("%s is ready", u.At("id"))
			}
		}
	}
	for id := range says {
		a := testmcp.Connect(t, p.Server(id), testmcp.Modern).CallTool("echo", "")
		if a.Err() == nil || strings.Contains(string(a.Raw), `"result"`) {
			t.Errorf("a call of %s gave %s", id, a.Raw)
		}
	}
	// Nothing was tried that the configuration does not say.
	for what, tried := range map[string]int{
		"GET at the older server": old.Rec.Count(func(r testmcp.Record) bool { return r.Text == "GET /sse" }),
		"POST at the newer one":   stream.Rec.Count(func(r testmcp.Record) bool { return r.Text == "POST /mcp" }),
	} {
		if tried != 0 {
			t.Errorf("%s was tried %d times", what, tried)
		}
	}
}
