package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// parked begins a call of a modern client that its server asks in, and gives the state that leads back to it.
func parked(t *testing.T, c *testmcp.Client, tool string) testmcp.Raw {
	t.Helper()
	a := c.CallTool(tool, "")
	state := a.Result().At("requestState")
	if a.Result().At("resultType").Str() != "input_required" || state == nil || !a.Result().Has("inputRequests", "q1") {
		t.Fatalf("%s gave %s", tool, a.Raw)
	}
	return state
}

// back is the request with which a client comes back.
func back(tool, arguments, answers string, state testmcp.Raw) string {
	more := `,"requestState":` + string(state)
	if answers != "" {
		more += `,"inputResponses":` + answers
	}
	return strings.TrimSuffix(testmcp.ToolParams(tool, arguments), "}") + more + "}"
}

const yes = `{"q1":{"action":"accept","content":{"answer":"yes"}}}`

func TestAStateLeadsOnlyToItsOwnCall(t *testing.T) {
	t.Parallel()
	const settings = `{"auth":{"mode":"tokens","tokens":[{"name":"ann","token":"token-of-ann"},{"name":"bob","token":"token-of-bob"}]}}`
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", settings)
		as := func(who, path string) *testmcp.Client {
			c := client(t, p, testmcp.Modern, nil)
			c.URL = p.Base + path
			c.Header.Set("Authorization", "Bearer token-of-"+who)
			return c
		}
		ann, tool := as("ann", "/mcp"), k.name+"__ask"
		state := parked(t, ann, tool)
		flipped := slices.Clone(state)
		flipped[len(flipped)/2] ^= 1
		for what, a := range map[string]testmcp.Answer{
			"a changed state":      ann.Call("tools/call", back(tool, "", yes, flipped)),
			"half a state":         ann.Call("tools/call", back(tool, "", yes, testmcp.Raw(string(state[:len(state)/2])+`"`))),
			"no state of ours":     ann.Call("tools/call", back(tool, "", yes, testmcp.Raw(`"something else"`))),
			"no text":              ann.Call("tools/call", back(tool, "", yes, testmcp.Raw(`{"a":1}`))),
			"another tool":         ann.Call("tools/call", back(k.name+"__echo", "", yes, state)),
			"other arguments":      ann.Call("tools/call", back(tool, `{"question":"Another?"}`, yes, state)),
			"another principal":    as("bob", "/mcp").Call("tools/call", back(tool, "", yes, state)),
			"another endpoint":     as("ann", "/servers/"+k.name+"/mcp").Call("tools/call", back("ask", "", yes, state)),
			"another kind of item": ann.Call("prompts/get", strings.Replace(back(k.name+"__greet", "", yes, state), `"arguments":{}`, `"arguments":{"who":"me"}`, 1)),
		} {
			equal(t, k.name+": "+what+": code", a.Code(), -32602)
		}
		equal(t, k.name+": calls at the server", rec.Count(testmcp.Received("tools/call")), 1)
		equal(t, k.name+": the right one", ann.Call("tools/call", back(tool, "", yes, state)).Text(), `{"action":"accept","content":{"answer":"yes"}}`)
	}
}

func TestTheSameAnswersAgainGiveTheSameResult(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", "")
		c := connect(t, p, testmcp.Modern, nil)
		tool := k.name + "__ask-and-wait"
		state := parked(t, c, tool)
		first := c.Begin("tools/call", back(tool, "", yes, state))
		rec.Wait(t, testmcp.Noted("has the answer"))
		again := c.Begin("tools/call", back(tool, "", yes, state))
		other := c.Call("tools/call", back(tool, "", `{"q1":{"action":"decline"}}`, state))
		equal(t, k.name+": other answers: code", other.Code(), -32602)
		rec.Signal("go on")
		const want = `{"action":"accept","content":{"answer":"yes"}}`
		equal(t, k.name+": the first", first.Final().Text(), want)
		equal(t, k.name+": the same again", again.Final().Text(), want)
		late := c.Call("tools/call", back(tool, "", yes, state))
		equal(t, k.name+": the same once more", late.Text(), want)
		equal(t, k.name+": its id", late.ID.String() != first.ID, true)
		equal(t, k.name+": answers at the server", len(answersOf(rec)), 1)
		equal(t, k.name+": calls at the server", rec.Count(testmcp.Received("tools/call")), 1)
	}
}

func TestAnswersThatAreMissingAreAskedForAgain(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, webOld, "asker", "")
	c := connect(t, p, testmcp.Modern, nil)
	const tool = "web-old__ask"
	state := parked(t, c, tool)
	for _, answers := range []string{"", "{}", `{"other":{"action":"accept"}}`} {
		a := c.Call("tools/call", back(tool, "", answers, state))
		equal(t, "asked again for "+answers, a.Result().At("inputRequests", "q1", "params", "message").Str(), "[web-old] Which?")
		used := c.Call("tools/call", back(tool, "", yes, state))
		equal(t, "the state before: code", used.Code(), -32602)
		state = a.Result().At("requestState")
	}
	equal(t, "answers at the server", len(answersOf(rec)), 0)
	holds(t, "the result", c.Call("tools/call", back(tool, "", yes, state)).Text(), "yes")
}

// Each question of a call is a round of its own.
func TestACallThatAsksTwiceIsParkedTwice(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", "")
		for _, e := range eras {
			c := connect(t, p, e.era, nil)
			c.Answers[elicit] = func(params testmcp.Raw) string {
				return `{"action":"accept","content":{"answer":` + params.At("message").String() + `}}`
			}
			holds(t, k.name+", "+e.name, c.CallTool(k.name+"__ask-twice", "").Text(), "First?", "Second?")
		}
		equal(t, k.name+": calls at the server", rec.Count(testmcp.Received("tools/call")), 2)
	}
}

func TestAParkedCallWhoseClientDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		for _, q := range []struct{ tool, method, answer string }{
			{"ask", elicit, `{"action":"cancel"}`},
			{"sample", sample, `"code":-1`},
		} {
			p, rec := startOne(t, k, "asker", "", `"elicitation":{"timeout":"100ms"}`)
			c := connect(t, p, testmcp.Modern, nil)
			state := parked(t, c, k.name+"__"+q.tool)
			rec.Wait(t, testmcp.Received("notifications/cancelled"))
			rec.WaitFor(t, "an answer", func() bool { return len(answersOf(rec)) == 1 })
			holds(t, k.name+": the server got", answersOf(rec)[0], q.answer)
			late := c.Call("tools/call", back(k.name+"__"+q.tool, "", yes, state))
			equal(t, k.name+": too late: code", late.Code(), -32602)
			equal(t, k.name+": counted", asked(p, k.name, q.method, "timeout"), 1)
			equal(t, k.name+": cancel counted", p.Metrics().Sum("mcp_proxy_cancellations_total", "upstream", k.name, "cause", "client_gone"), 1)
		}
	}
}

// The longest time of a call runs on while it is parked.
func TestAParkedCallEndsAfterItsLongestTime(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", "", `"max_call_time":"150ms"`)
		c := connect(t, p, testmcp.Modern, nil)
		state := parked(t, c, k.name+"__ask")
		rec.Wait(t, testmcp.Received("notifications/cancelled"))
		rec.WaitFor(t, "an answer", func() bool { return len(answersOf(rec)) == 1 })
		equal(t, k.name+": the server got", answersOf(rec)[0], `{"action":"cancel"}`)
		equal(t, k.name+": too late: code", c.Call("tools/call", back(k.name+"__ask", "", yes, state)).Code(), -32602)
		equal(t, k.name+": counted", p.Metrics().Sum("mcp_proxy_cancellations_total", "upstream", k.name, "cause", "max_time"), 1)
	}
}

// A client that goes away while it waits for the rest of a call has cancelled it.
func TestTheCancelOfACallThatWasParked(t *testing.T) {
	t.Parallel()
	s := startAll(t, oldKinds, "asker", "")
	clients, rests := map[kind]*testmcp.Client{}, map[kind]*testmcp.Pending{}
	for _, k := range oldKinds {
		c := connect(t, s.Proxy, testmcp.Modern, nil)
		tool := k.name + "__ask-and-wait"
		state := parked(t, c, tool)
		c.Header.Set("Accept", "text/event-stream, application/json")
		clients[k], rests[k] = c, c.Begin("tools/call", back(tool, "", yes, state))
		s.recs[k.name].Wait(t, testmcp.Noted("has the answer"))
	}
	for _, k := range oldKinds {
		clients[k].Cancel(rests[k].Stream()) // it has begun as a stream by then
		s.recs[k.name].Wait(t, testmcp.Is(testmcp.Cancel))
		testmcp.Eventually(t, "counted cancel", func() bool {
			return s.Metrics().Sum("mcp_proxy_cancellations_total", "upstream", k.name, "cause", "client") == 1
		})
	}
}

// At the end of the program the server is told that its question is over, and that nobody waits for the call.
func TestParkedCallsEndWithTheProgram(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", "")
		parked(t, connect(t, p, testmcp.Modern, nil), k.name+"__ask")
		p.Stop()
		rec.WaitFor(t, "an answer", func() bool { return len(answersOf(rec)) == 1 })
		equal(t, k.name+": the server got", answersOf(rec)[0], `{"action":"cancel"}`)
		rec.Wait(t, testmcp.Received("notifications/cancelled"))
	}
}

// A server that dies takes its parked calls with it: whoever comes back is told that nothing is certain.
func TestAParkedCallWhoseServerDies(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, pipeOld, "asker", "")
	c := connect(t, p, testmcp.Modern, nil)
	state := parked(t, c, "pipe-old__ask")
	c.CallTool("pipe-old__crash", "")
	rec.WaitN(t, 2, testmcp.Is(testmcp.Start))
	a := c.Call("tools/call", back("pipe-old__ask", "", yes, state))
	equal(t, "reason", a.Err().At("data", "reason").Str(), "uncertain")
	equal(t, "code", a.Code(), -32603)
}

// A modern server's state is its own: it comes back byte for byte, also one that looks like ours.
func TestStatesOfModernServersAreTheirOwn(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{pipeNew, webNew} {
		p, rec := startOne(t, k, "stateful", "")
		for i, e := range eras {
			c := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"a"}}`})
			holds(t, k.name+", "+e.name, c.CallTool(k.name+"__stateful", "").Text(), "a")
			second := rec.WaitN(t, 2*(i+1), testmcp.CalledTool("stateful"))[2*i+1]
			equal(t, k.name+", "+e.name+": the state", second.Frame.At("params", "requestState").String(), `"mcp-proxy.\u0041BC"`)
			equal(t, k.name+", "+e.name+": the answers", second.Frame.At("params", "inputResponses").String(), `{"k \"1\"":{"action":"accept","content":{"answer":"a"}}}`)
		}
	}
}

var _ = behaviour("stateful", func() *testmcp.Server {
	s := testmcp.Basic("stateful")
	s.Tools = []testmcp.Tool{testmcp.SimpleTool("stateful", func(c *testmcp.Call) {
		if given := c.Params.At("inputResponses", `k "1"`); given != nil {
			c.Text(string(given))
			return
		}
		c.NeedInput(`{"k \"1\"":{"method":"elicitation/create","params":{"message":"?","requestedSchema":`+answerSchema+`}}}`, `"mcp-proxy.\u0041BC"`)
	})}
	return s
})

// A legacy client cannot slip the words of the other era into a request.
func TestLegacyClientsCannotBringAnswersToModernServers(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, webNew, "stateful", "")
	c := connect(t, p, testmcp.Legacy, map[string]string{elicit: `{"action":"accept","content":{"answer":"asked"}}`})
	a := c.Call("tools/call", back("web-new__stateful", "", `{"k \"1\"":{"action":"accept","content":{"answer":"slipped"}}}`, testmcp.Raw(`"x"`)))
	holds(t, "the result", a.Text(), "asked")
	first := rec.Wait(t, testmcp.CalledTool("stateful"))
	if first.Frame.Has("params", "requestState") || first.Frame.Has("params", "inputResponses") {
		t.Errorf("the server got %s", first.Frame)
	}
}

// A modern server that only wants to be called again, or that asks without end, is given up.
func TestModernServersThatAskWithoutEnd(t *testing.T) {
	t.Parallel()
	p, rec := startOne(t, webNew, "endless", "")
	c := connect(t, p, testmcp.Legacy, map[string]string{elicit: `{"action":"accept","content":{"answer":"a"}}`})
	for tool, calls := range map[string]int{"asks": 11, "waits": 4, "nothing": 1, "crowd": 1} {
		a := c.CallTool("web-new__"+tool, "")
		equal(t, tool+": code", a.Code(), -32603)
		equal(t, tool+": calls", rec.Count(testmcp.CalledTool(tool)), calls)
	}
	equal(t, "a few rounds", c.CallTool("web-new__patient", "").Text(), "done")
}

var _ = behaviour("endless", func() *testmcp.Server {
	s := testmcp.Basic("endless")
	question := `{"method":"elicitation/create","params":{"message":"?","requestedSchema":` + answerSchema + `}}`
	s.Tools = []testmcp.Tool{
		testmcp.SimpleTool("asks", func(c *testmcp.Call) { c.NeedInput(`{"q":`+question+`}`, `"s"`) }),
		testmcp.SimpleTool("waits", func(c *testmcp.Call) { c.NeedInput("", `"s"`) }),
		testmcp.SimpleTool("nothing", func(c *testmcp.Call) { c.NeedInput("", "") }),
		testmcp.SimpleTool("crowd", func(c *testmcp.Call) {
			many := `"q":` + question
			for i := range 40 {
				many += `,"q` + string(rune('A'+i%26)) + string(rune('a'+i/26)) + `":` + question
			}
			c.NeedInput("{"+many+"}", "")
		}),
		testmcp.SimpleTool("patient", func(c *testmcp.Call) {
			switch n := c.Instance().Add("patient", 1); {
			case n < 5:
				c.NeedInput(`{"q":`+question+`}`, `"s"`)
			case n < 7:
				c.NeedInput("", `"s"`)
			default:
				c.Text("done")
			}
		}),
	}
	return s
})
