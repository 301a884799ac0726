package stdioserve

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// rich is a server with something of everything, in one era.
var _ = testmcp.Register("rich", rich)

func rich(args []string) *testmcp.Server {
	s := testmcp.Basic("rich")
	s.Era = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}[args[0]]
	s.Tools = append(s.Tools, testmcp.SimpleTool("update", func(c *testmcp.Call) {
		c.Instance().Notify("notifications/resources/updated", `{"uri":"test://rich/readme"}`)
		c.Text("updated")
	}))
	s.On = map[string]testmcp.Handler{"completion/complete": func(c *testmcp.Call) {
		c.Result(`{"completion":{"values":[` + testmcp.Quote(c.Params.At("ref").String()) + `]}}`)
	}}
	return s
}

// places are the ways in which a server can be reached, by name.
var places = map[string]func(t *testing.T) (string, *testmcp.Recorder){
	"old-child": child("legacy"), "new-child": child("modern"), "old-web": web("legacy"), "new-web": web("modern"),
	"sse": func(t *testing.T) (string, *testmcp.Recorder) {
		h := testmcp.ServeSSE(t, rich([]string{"legacy"}), testmcp.SSEOptions{})
		return h.Entry(`"type":"sse"`), h.Rec
	},
}

func child(era string) func(*testing.T) (string, *testmcp.Recorder) {
	return func(t *testing.T) (string, *testmcp.Recorder) {
		rec := testmcp.NewRecorder(t)
		return rec.Entry("rich", []string{era}), rec
	}
}

func web(era string) func(*testing.T) (string, *testmcp.Recorder) {
	return func(t *testing.T) (string, *testmcp.Recorder) {
		h := testmcp.ServeHTTP(t, rich([]string{era}), testmcp.HTTPOptions{})
		return h.Entry(), h.Rec
	}
}

// TestEverythingOfEveryServer: prompts, resources and their updates, completion, log messages and questions, whatever the
// eras and however the server is reached.
func TestEverythingOfEveryServer(t *testing.T) {
	for _, w := range ways {
		for _, e := range eras {
			t.Run(w.name+", "+e.name, func(t *testing.T) {
				t.Parallel()
				servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
				for name, serve := range places {
					servers[name], recs[name] = serve(t)
				}
				c := w.open(t, e.era, testmcp.Config("", servers))
				c.Capabilities = `{"elicitation":{"form":{}},"sampling":{},"roots":{}}`
				c.Answers["elicitation/create"] = func(p testmcp.Raw) string { return answer(p.At("message").Str()) }
				c.Open()
				for name := range places {
					reads(t, c, name)
					asks(t, c, name)
					hears(t, c, name, recs[name])
				}
				leaves(t, c)
			})
		}
	}
}

func answer(text string) string {
	return `{"action":"accept","content":{"which":` + testmcp.Quote(text) + `}}`
}

// reads gets a prompt, a resource and a completion.
func reads(t *testing.T, c *testmcp.PipeClient, name string) {
	t.Helper()
	if m := c.Call("resources/read", `{"uri":`+testmcp.Quote(readme(c, name))+`}`); m.Result().At("contents", 0, "text").Str() != "readme of rich" {
		t.Errorf("%s: a resource is %s", name, m.Raw)
	}
	if m := c.Call("prompts/get", `{"name":"`+name+`__greet","arguments":{"who":"me"}}`); m.Result().At("messages", 0, "content", "text").Str() != "prompt greet" {
		t.Errorf("%s: a prompt is %s", name, m.Raw)
	}
	m := c.Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+name+`__greet"},"argument":{"name":"who","value":""}}`)
	if got := m.Result().At("completion", "values", 0).Str(); got != `{"type":"ref/prompt","name":"greet"}` {
		t.Errorf("%s: a completion is %s", name, m.Raw)
	}
}

// readme is the URI of a server's resource; the first server's is as it stands.
func readme(c *testmcp.PipeClient, name string) (uri string) {
	for _, r := range c.Call("resources/list", "").Result().At("resources").Items() {
		if u := r.At("uri").Str(); uri == "" || strings.HasPrefix(u, name+"+") {
			uri = u
		}
	}
	return uri
}

// asks calls a tool that asks a person.
func asks(t *testing.T, c *testmcp.PipeClient, name string) {
	t.Helper()
	m := c.CallTool(name+"__elicit", "")
	if c.Era == testmcp.Modern { // it is asked in the answer, and calls again
		q := m.Result().At("inputRequests")
		if len(q.Keys()) != 1 {
			t.Errorf("%s: a call that asks is answered with %s", name, m.Raw)
			return
		}
		key := q.Keys()[0]
		again := strings.TrimSuffix(testmcp.ToolParams(name+"__elicit", ""), "}") +
			`,"inputResponses":{` + testmcp.Quote(key) + `:` + answer(q.At(key, "params", "message").Str()) + `}`
		if state := m.Result().At("requestState"); state != nil {
			again += `,"requestState":` + string(state)
		}
		m = c.Call("tools/call", again+"}")
	}
	if want := answer("[" + name + "] Which?"); text(m) != want {
		t.Errorf("%s: the server got %s, want %s", name, m.Raw, want)
	}
}

// hears sets a level and subscribes to a resource, and waits for what comes of it.
func hears(t *testing.T, c *testmcp.PipeClient, name string, rec *testmcp.Recorder) {
	t.Helper()
	uri, tag := readme(c, name), ""
	if c.Era == testmcp.Modern {
		tag = c.Start("subscriptions/listen", `{"notifications":{"resourceSubscriptions":[`+testmcp.Quote(uri)+`]}}`)
		c.Wait("acknowledgement", func(m testmcp.Message) bool {
			return m.Method == "notifications/subscriptions/acknowledged" && m.Params.At("_meta", "io.modelcontextprotocol/subscriptionId").String() == tag
		})
	} else if m := c.Call("resources/subscribe", `{"uri":`+testmcp.Quote(uri)+`}`); m.Result() == nil {
		t.Errorf("%s: a subscription is answered with %s", name, m.Raw)
	}
	rec.WaitFor(t, "the subscription of "+name, func() bool {
		return rec.Count(func(r testmcp.Record) bool {
			return r.Kind == testmcp.In && (r.Method == "resources/subscribe" || r.Method == "subscriptions/listen" && strings.Contains(string(r.Frame), "readme"))
		}) > 0
	})
	testmcp.Eventually(t, "an update of "+uri, func() bool {
		c.CallTool(name+"__update", "")
		for _, m := range c.Lines() {
			if m.Method == "notifications/resources/updated" && m.Params.At("uri").Str() == uri && m.Params.At("_meta", "io.modelcontextprotocol/subscriptionId").String() == tag {
				return true
			}
		}
		return false
	})
	logs(t, c, name)
}

// logs asks for a level and calls a tool that logs.
func logs(t *testing.T, c *testmcp.PipeClient, name string) {
	t.Helper()
	params := testmcp.ToolParams(name+"__log", `{"level":"alert"}`)
	if c.Era == testmcp.Modern {
		params = strings.TrimSuffix(params, "}") + `,"_meta":{"io.modelcontextprotocol/logLevel":"warning"}}`
	} else {
		c.Call("logging/setLevel", `{"level":"warning"}`)
	}
	before := heard(c)
	if m := c.Call("tools/call", params); text(m) != "logged" {
		t.Errorf("%s: a call that logs is answered with %s", name, m.Raw)
	}
	if n := heard(c) - before; n != 1 {
		t.Errorf("%s: %d log messages came, want 1", name, n)
	}
}

func heard(c *testmcp.PipeClient) (n int) {
	for _, m := range c.Lines() {
		if m.Method == "notifications/message" {
			n++
		}
	}
	return n
}
