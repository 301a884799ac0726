package bridge

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const (
	initialized  = "notifications/initialized"
	rootsChanged = "notifications/roots/list_changed"
	visited      = "notifications/elicitation/complete"
)

// rooted asks for the roots as soon as a client is there. When they change it asks again, tells of a visited page, and
// logs.
var _ = behaviour("rooted", func() *testmcp.Server {
	s := testmcp.Basic("rooted")
	ask := func(c *testmcp.Call) { c.Elsewhere(`{"jsonrpc":"2.0","id":"` + c.Method + `","method":"roots/list"}`) }
	s.On = map[string]testmcp.Handler{initialized: ask, rootsChanged: func(c *testmcp.Call) {
		ask(c)
		c.Elsewhere(`{"jsonrpc":"2.0","method":"` + visited + `","params":{"elicitationId":"e-1"}}`)
		c.Elsewhere(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"noise"}}`)
		c.Elsewhere(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"heard"}}`)
	}}
	return s
})

// What a server says outside of any call on a connection that belongs to one session is that session's.
func TestASessionOfItsOwnIsAskedOutsideOfCalls(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p, rec := startOne(t, k, "rooted", "", `"sharing":"session"`)
			mine := connect(t, p, testmcp.Legacy, map[string]string{roots: `{"roots":[{"uri":"file:///mine"}]}`})
			other := connect(t, p, testmcp.Legacy, map[string]string{roots: `{"roots":[{"uri":"file:///other"}]}`})
			stream, elsewhere := mine.Get(""), other.Get("")
			defer stream.Close()
			defer elsewhere.Close()
			rec.WaitFor(t, "the refusal of the listing connection", func() bool { return len(answersOf(rec)) == 1 })

			mine.CallTool(k.name+"__echo", `{"text":"x"}`) // begins the connection; the question may seem to be the call's
			rec.WaitFor(t, "the roots", func() bool { return len(answersOf(rec)) == 2 })
			holds(t, "the roots", answersOf(rec)[1], "file:///mine")

			mine.Call("logging/setLevel", `{"level":"info"}`)
			mine.Notify(rootsChanged, "")
			stream.WaitMethod(roots)
			rec.WaitFor(t, "the roots again", func() bool { return len(answersOf(rec)) == 3 })
			holds(t, "the roots again", answersOf(rec)[2], "file:///mine")
			stream.WaitMethod(visited)
			holds(t, "the log", string(stream.WaitMethod("notifications/message").Params), "heard")
			equal(t, "asked of the other", len(other.Asked()), 0)
			equal(t, "said to the other", len(elsewhere.Events()), 1) // how the stream begins
			equal(t, "counted", asked(p, k.name, roots, "ok"), 2)
		})
	}
}

// Many servers ask beside the stream of the call that they work on. On a connection that serves one client at a time that
// is known to be the call's, as long as it is the only one.
func TestAQuestionBesideTheCallOnAConnectionOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{`"sharing":"session"`, `"sharing":"call","instances":2`} {
		s := startAll(t, oldKinds, "asker", "", sharing)
		for _, e := range eras {
			for _, k := range oldKinds {
				c := connect(t, s.Proxy, e.era, map[string]string{elicit: `{"action":"accept","content":{}}`})
				other := connect(t, s.Proxy, e.era, map[string]string{elicit: `{"action":"accept","content":{}}`})
				a := c.CallTool(k.name+"__ask-outside", `{"method":"`+elicit+`"}`)
				holds(t, sharing+", "+e.name+", "+k.name, a.Text(), `"action":"accept"`)
				equal(t, sharing+", "+e.name+", "+k.name+": asked", len(c.Asked()), 1)
				equal(t, sharing+", "+e.name+", "+k.name+": asked of another", len(other.Asked()), 0)
			}
		}
	}
}

// A connection that is nobody else's declares what its client can do: a server asks nobody for what it has not. Clients of
// the new era have one for each principal and what its client can do, or one for each call.
func TestAConnectionOfItsOwnDeclaresWhatItsClientCan(t *testing.T) {
	t.Parallel()
	const (
		nobody = ""
		tokens = `{"auth":{"mode":"tokens","tokens":[{"name":"ann","token":"token-of-ann"}]}}`
		asks   = `{"elicitation":{},"roots":{"listChanged":true}}`
		told   = `{"elicitation":{"form":{}},"roots":{"listChanged":true}}`
	)
	for _, k := range oldKinds {
		for name, c := range map[string]struct {
			settings string
			era      testmcp.Era
			calls    []string // what the client can do in each
			want     []string // what is declared, after the listing connection
		}{
			"a session":   {nobody, testmcp.Legacy, []string{asks, asks}, []string{told}},
			"anonymous":   {nobody, testmcp.Modern, []string{asks, `{"sampling":{}}`, "{}"}, []string{told, `{"sampling":{}}`, "{}"}},
			"a principal": {tokens, testmcp.Modern, []string{asks, `{"sampling":{}}`, asks}, []string{told, `{"sampling":{}}`}},
		} {
			p, rec := startOne(t, k, "rooted", c.settings, `"sharing":"session"`)
			cl := client(t, p, c.era, nil)
			if c.settings != nobody {
				cl.Header.Set("Authorization", "Bearer token-of-ann")
			}
			cl.Capabilities = c.calls[0]
			cl.Open()
			for _, caps := range c.calls {
				cl.Capabilities = caps
				cl.CallTool(k.name+"__echo", `{"text":"x"}`)
			}
			var got []string
			for _, r := range rec.Find(testmcp.Is(testmcp.In)) {
				if r.Method == "initialize" {
					got = append(got, string(r.Frame.At("params", "capabilities")))
				}
			}
			holds(t, k.name+": "+name+": the listing one", got[0], `"sampling":{"context"`)
			equal(t, k.name+": "+name, strings.Join(got[1:], " "), strings.Join(c.want, " "))
		}
	}
}

// A question waits a little for a client that has not opened its stream yet, and is answered for one that never does.
func TestAQuestionBeforeTheStreamIsThere(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			questionsBeforeTheStream(t, k)
		})
	}
}

func questionsBeforeTheStream(t *testing.T, k kind) {
	t.Helper()
	p, rec := startOne(t, k, "rooted", "", `"sharing":"session"`)
	answers := 1
	answered := func(what string) string {
		rec.WaitFor(t, what, func() bool { return len(answersOf(rec)) == answers })
		answers++
		return answersOf(rec)[answers-2]
	}
	begin := func(uri string) *testmcp.Client {
		c := connect(t, p, testmcp.Legacy, map[string]string{roots: `{"roots":[{"uri":"` + uri + `"}]}`})
		equal(t, "a call beside the first question", c.CallTool(k.name+"__echo", `{"text":"works"}`).Text(), "works")
		answered("the first question") // on the stream of the call, or for want of one
		c.Notify(rootsChanged, "")
		rec.WaitFor(t, "the second question", func() bool {
			return len(rec.Find(func(r testmcp.Record) bool { return r.Kind == testmcp.Out && r.Method == roots })) == answers
		})
		return c
	}
	answered("the refusal of the listing connection")
	late := begin("file:///late")
	stream := late.Get("")
	defer stream.Close()
	holds(t, "the roots", answered("the roots"), "file:///late")
	if k != pipeOld {
		return // whoever never opens one costs the same time everywhere
	}

	never := begin("file:///never")
	holds(t, "for who never opens a stream", answered("the answer for who never opens a stream"), `"code":-32603`)
	equal(t, "a call afterwards", never.CallTool(k.name+"__echo", `{"text":"works"}`).Text(), "works")
}

// visiting sends its client to a page, and tells of any that it was visited.
var _ = behaviour("visiting", func() *testmcp.Server {
	s := testmcp.Basic("visiting")
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("send", func(c *testmcp.Call) {
			c.Error(-32042, "visit first", `{"elicitations":[{"mode":"url","message":"Sign in.","url":"https://example.org","elicitationId":`+string(c.Args("id"))+`}]}`)
		}),
		testmcp.SimpleTool("tell", func(c *testmcp.Call) {
			c.Elsewhere(`{"jsonrpc":"2.0","method":"` + visited + `","params":{"elicitationId":` + string(c.Args("id")) + `}}`)
			c.Text("told")
		}))
	return s
})

// The news that a page has been visited names the elicitation, and so finds whom the server sent there, whoever calls
// meanwhile.
func TestTheNewsOfAVisitedPageFindsWhomItIsFor(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, _ := startOne(t, k, "visiting", "")
		sent := map[string]*testmcp.Stream{}
		for _, id := range []string{`"a"`, `"b"`} {
			c := connect(t, p, testmcp.Legacy, nil)
			equal(t, k.name+": code", c.CallTool(k.name+"__send", `{"id":`+id+`}`).Code(), -32042)
			sent[id] = c.Get("")
			defer sent[id].Close()
		}
		listen := connect(t, p, testmcp.Modern, nil).Listen(`{"toolsListChanged":true,"resourceSubscriptions":["test://visiting/readme"]}`)
		listen.WaitMethod("notifications/subscriptions/acknowledged")
		teller := connect(t, p, testmcp.Legacy, nil)
		own := teller.Get("")
		defer own.Close()
		for _, id := range []string{`"nobody"`, `"b"`, `"a"`} {
			teller.CallTool(k.name+"__tell", `{"id":`+id+`}`)
		}
		for id, stream := range sent {
			equal(t, k.name+": the news", string(stream.WaitMethod(visited).Params), `{"elicitationId":`+id+`}`)
			equal(t, k.name+": said to "+id, len(stream.Events()), 2)
		}
		equal(t, k.name+": said to who calls", len(own.Events()), 1)
		equal(t, k.name+": said to a new client", len(listen.Events()), 1)
	}
}
