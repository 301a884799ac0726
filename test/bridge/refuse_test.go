package bridge

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// sharedChannels are the kinds that have one channel for all calls, on which nothing says whose a message is.
var sharedChannels = []kind{pipeOld, sse}

// On a channel that several calls share nothing says whose a question is. It is refused at once, so that no tool hangs, and
// asked of nobody; as soon as one call is alone, its question is known to be its own.
func TestAQuestionThatCouldBelongToTwoCallsIsRefused(t *testing.T) {
	t.Parallel()
	for _, k := range sharedChannels {
		for _, e := range eras {
			p, rec := startOne(t, k, "asker", "")
			first := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"mine"}}`})
			other := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"not mine"}}`})
			held := other.Begin("tools/call", testmcp.ToolParams(k.name+"__wait", `{"signal":"go"}`))
			rec.Wait(t, testmcp.CalledTool("wait"))
			what := k.name + ", " + e.name
			equal(t, what+": beside another call", first.CallTool(k.name+"__ask", "").Text(), `{"action":"decline"}`)
			equal(t, what+": a model is refused", first.CallTool(k.name+"__sample", "").Code(), -32601)
			rec.Signal("go")
			held.Final()
			equal(t, what+": alone", first.CallTool(k.name+"__ask", "").Text(), `{"action":"accept","content":{"answer":"mine"}}`)
			equal(t, what+": asked of the other", len(other.Asked()), 0)
			equal(t, what+": forms refused", asked(p, k.name, elicit, "denied"), 1)
			equal(t, what+": models refused", asked(p, k.name, sample, "denied"), 1)
			hint := p.Status().At("upstreams", 0, "hints", 0).Str()
			holds(t, what+": the status hints at it", hint, `2 of its questions`)
			holds(t, what+": and at what helps", hint, `"sharing": "session"`)
		}
	}
}

// Where each session has a process of its own, the same two calls are both asked.
func TestConnectionsOfTheirOwnCanAsk(t *testing.T) {
	t.Parallel()
	for _, sharing := range []string{`"sharing":"session"`, `"sharing":"call","instances":4`} {
		for _, e := range eras {
			p, rec := startOne(t, pipeOld, "asker", "", sharing)
			a := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"mine"}}`})
			b := connect(t, p, e.era, nil)
			held := b.Begin("tools/call", testmcp.ToolParams("pipe-old__wait", `{"signal":"go"}`))
			rec.Wait(t, testmcp.CalledTool("wait"))
			equal(t, sharing+", "+e.name, a.CallTool("pipe-old__ask", "").Text(), `{"action":"accept","content":{"answer":"mine"}}`)
			rec.Signal("go")
			held.Final()
		}
	}
}

// As many clients as there are connections may be asked at a time, though one connection less may wait for its client to
// come back: the last question waits for another to be answered.
func TestEveryConnectionCanAskAtATime(t *testing.T) {
	t.Parallel()
	const connections = 4
	for _, e := range eras {
		p, _ := startOne(t, webOld, "asker", "", `"sharing":"call","instances":4`)
		for range 5 {
			var wg sync.WaitGroup
			for i := range connections {
				mine := fmt.Sprintf(`{"action":"accept","content":{"answer":"mine-%d"}}`, i)
				c := connect(t, p, e.era, map[string]string{elicit: mine})
				wg.Go(func() {
					if got := c.CallTool("web-old__ask", "").Text(); got != mine {
						t.Errorf("%s: %d got %s", e.name, i, got)
					}
				})
			}
			wg.Wait()
		}
	}
}

// What comes on the standing stream belongs to no call, even if only one is under way.
func TestQuestionsOutsideOfCallsAreRefused(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, webOld, "asker", "")
	for _, e := range eras {
		c := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{}}`, sample: `{}`, roots: `{"roots":[]}`})
		for method, want := range map[string]string{elicit: `"action":"decline"`, sample: `"code":-32601`, roots: `"code":-32601`} {
			a := c.CallTool("web-old__ask-outside", `{"method":"`+method+`"}`)
			holds(t, e.name+", "+method, a.Text(), want)
		}
		equal(t, e.name+": asked", len(c.Asked()), 0)
	}
	equal(t, "counted", asked(p, "web-old", roots, "denied"), 2)
}

// A server that asks for the roots as soon as it is initialized must not wait for a client that is not there yet.
func TestQuestionsRightAfterTheHandshakeAreAnswered(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "curious", "")
		rec.WaitFor(t, "an answer", func() bool { return len(answersOf(rec)) == 1 })
		holds(t, k.name, answersOf(rec)[0], "-32601")
		c := connect(t, p, testmcp.Legacy, map[string]string{roots: `{"roots":[]}`})
		equal(t, k.name, c.CallTool(k.name+"__echo", `{"text":"works"}`).Text(), "works")
		equal(t, k.name+": counted", asked(p, k.name, roots, "denied"), 1)
		// A client that has said that it has no roots is not asked for them in its own call either.
		none := testmcp.Connect(t, p.Base+"/mcp", testmcp.Legacy)
		equal(t, k.name+": a client without roots", none.CallTool(k.name+"__roots", "").Code(), -32601)
		equal(t, k.name+": asked", len(none.Asked())+len(c.Asked()), 0)
	}
}

var _ = behaviour("curious", func() *testmcp.Server {
	s := testmcp.Basic("curious")
	s.On = map[string]testmcp.Handler{"notifications/initialized": func(c *testmcp.Call) {
		c.Elsewhere(`{"jsonrpc":"2.0","id":"early","method":"roots/list"}`)
	}}
	return s
})

// What a client has not declared it is not asked, whatever the server does, and what the configuration declines neither.
func TestOnlyWhatTheClientDeclaredIsAsked(t *testing.T) {
	t.Parallel()
	plain := startAll(t, kinds, "asker", "")
	declining := startAll(t, kinds, "asker", "", `"elicitation":{"mode":"decline"}`)
	for _, e := range eras {
		for _, k := range kinds {
			for _, c := range []struct {
				what         string
				stage        stage
				capabilities string
				tool, method string
			}{
				{"no elicitation", plain, `{"sampling":{}}`, "ask", elicit},
				{"no pages", plain, `{"elicitation":{"form":{}}}`, "visit", elicit},
				{"no sampling", plain, `{"elicitation":{}}`, "sample", sample},
				{"no tools in sampling", plain, `{"sampling":{}}`, "ask-with-tools", sample},
				{"no roots", plain, `{"elicitation":{}}`, "roots", roots},
				{"declined by configuration", declining, allCapabilities, "ask", elicit},
				{"pages declined by configuration", declining, allCapabilities, "visit", elicit},
			} {
				if e.era == testmcp.Modern && k.era == testmcp.Modern && c.stage.Proxy == plain.Proxy {
					continue // the server sees for itself what the client declares
				}
				t.Run(e.name+", "+k.name+", "+c.what, func(t *testing.T) {
					one := client(t, c.stage.Proxy, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"no"}}`, sample: `{}`, roots: `{}`})
					one.Capabilities = c.capabilities
					before := asked(c.stage.Proxy, k.name, c.method, "denied")
					a := one.Open().CallTool(k.name+"__"+c.tool, "")
					switch {
					case c.method == elicit && (k.era == testmcp.Legacy || e.era == testmcp.Legacy):
						equal(t, "the server got", a.Text(), `{"action":"decline"}`)
					case a.Err() == nil:
						t.Errorf("the call gave %s", a.Raw)
					}
					equal(t, "asked", len(one.Asked()), 0)
					equal(t, "counted", asked(c.stage.Proxy, k.name, c.method, "denied")-before, 1)
				})
			}
		}
	}
}

// Modern servers are told what the client of each request can be asked, and no elicitation where it is declined.
func TestModernServersAreToldWhatEachClientCanBeAsked(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string][]string{"": {"elicitation", "sampling", "roots"}, `"elicitation":{"mode":"decline"}`: {"sampling", "roots"}} {
		for _, k := range []kind{pipeNew, webNew} {
			var more []string
			if settings != "" {
				more = []string{settings}
			}
			p, rec := startOne(t, k, "asker", "", more...)
			for i, e := range eras {
				connect(t, p, e.era, nil).CallTool(k.name+"__echo", `{"text":"x"}`)
				call := rec.WaitN(t, i+1, testmcp.CalledTool("echo"))[i]
				told := call.Frame.At("params", "_meta", "io.modelcontextprotocol/clientCapabilities")
				equal(t, e.name+", "+k.name+": capabilities", len(told.Keys()), len(want))
				for _, name := range want {
					if !told.Has(name) {
						t.Errorf("%s, %s: %s is missing in %s", e.name, k.name, name, told)
					}
				}
			}
		}
	}
}

// An answer that is not what the schema demands never reaches the server.
func TestAnswersThatAreNotWhatWasAskedForAreDeclined(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	for _, e := range eras {
		for _, k := range kinds {
			if e.era == testmcp.Modern && k.era == testmcp.Modern {
				continue // the rounds are the client's and the server's own
			}
			before := asked(s.Proxy, k.name, elicit, "invalid")
			for _, bad := range []string{`{"action":"accept","content":{}}`, `{"action":"accept","content":{"answer":7}}`, `{"action":"accept"}`, `"yes"`} {
				c := connect(t, s.Proxy, e.era, map[string]string{elicit: bad})
				equal(t, e.name+", "+k.name+": the server got for "+bad, c.CallTool(k.name+"__ask", "").Text(), `{"action":"decline"}`)
			}
			equal(t, e.name+", "+k.name+": counted", asked(s.Proxy, k.name, elicit, "invalid")-before, 4)
		}
	}
}

// A client's refusal goes to an old server as it is. A modern one has no place for it, so that the call fails.
func TestAClientThatRefusesToAnswer(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	c := connect(t, s.Proxy, testmcp.Legacy, map[string]string{sample: `!{"code":-1,"message":"User rejected sampling request","data":{"x":1}}`})
	for _, k := range kinds {
		a := c.CallTool(k.name+"__sample", "")
		want := -1
		if k.era == testmcp.Modern {
			want = -32603
		}
		equal(t, k.name+": code", a.Code(), want)
		holds(t, k.name, string(a.Raw), "User rejected sampling request")
		equal(t, k.name+": counted", asked(s.Proxy, k.name, sample, "rpc_error"), 1)
	}
}

// A client that takes no event stream cannot be asked: forms are declined, and nothing hangs.
func TestClientsThatTakeOnlyJSONAreNotAsked(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	c := client(t, s.Proxy, testmcp.Legacy, map[string]string{elicit: `{"action":"accept","content":{"answer":"no"}}`})
	c.Header = http.Header{"Accept": {"application/json"}}
	c.Open()
	for _, k := range kinds {
		equal(t, k.name, c.CallTool(k.name+"__ask", "").Text(), `{"action":"decline"}`)
		equal(t, k.name+": counted", asked(s.Proxy, k.name, elicit, "denied"), 1)
	}
	equal(t, "asked", len(c.Asked()), 0)
}

// A person who does not answer in time has dismissed the question.
func TestAQuestionThatNobodyAnswersInTime(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "", `"elicitation":{"timeout":"100ms"}`)
	for _, k := range kinds {
		c := connect(t, s.Proxy, testmcp.Legacy, nil)
		never := make(chan struct{})
		c.Answers[elicit] = func(testmcp.Raw) string { <-never; return `{"action":"decline"}` }
		call := c.Start("tools/call", testmcp.ToolParams(k.name+"__ask", ""))
		question := call.WaitMethod(elicit)
		equal(t, k.name+": taken back", call.WaitMethod("notifications/cancelled").Params.At("requestId").String(), question.ID.String())
		equal(t, k.name, call.Final().Text(), `{"action":"cancel"}`)
		equal(t, k.name+": counted", asked(s.Proxy, k.name, elicit, "timeout"), 1)
		close(never)
	}
}

// While a person thinks, the clock that watches for signs of life stands still.
func TestAPersonMayTakeLongerThanACall(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "", `"call_timeout":"2s"`)
	think := make(chan struct{})
	thoughtOver, hung := map[kind]*testmcp.Stream{}, map[kind]*testmcp.Pending{}
	for _, k := range kinds {
		c := connect(t, s.Proxy, testmcp.Legacy, nil)
		c.Answers[elicit] = func(testmcp.Raw) string { <-think; return `{"action":"accept","content":{"answer":"at last"}}` }
		thoughtOver[k] = c.Start("tools/call", testmcp.ToolParams(k.name+"__ask", ""))
		thoughtOver[k].WaitMethod(elicit)
		hung[k] = connect(t, s.Proxy, testmcp.Modern, nil).Begin("tools/call", testmcp.ToolParams(k.name+"__hang", ""))
	}
	for _, k := range kinds {
		equal(t, k.name+": another call, which runs into the limit in the meantime", hung[k].Final().Code(), -32603)
	}
	close(think)
	for _, k := range kinds {
		holds(t, k.name, thoughtOver[k].Final().Text(), "at last")
	}
}
