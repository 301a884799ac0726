package bridge

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A form, a model's answer and the roots, from servers of both eras over both transports to clients of both eras.
func TestQuestionsReachTheClientAndItsAnswersTheServer(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	for _, e := range eras {
		c := connect(t, s.Proxy, e.era, map[string]string{
			elicit: `{"action":"accept","content":{"which":"this one","x-more":12345678901234567890}}`,
			sample: `{"role":"assistant","content":{"type":"text","text":"said"},"model":"m","x-more":true}`,
			roots:  `{"roots":[{"uri":"file:///home","name":"home"}]}`,
		})
		for _, k := range kinds {
			for _, q := range []struct{ tool, method, label, answer string }{
				{"elicit", elicit, "[" + k.name + "] Which?", `{"action":"accept","content":{"which":"this one","x-more":12345678901234567890}}`},
				{"sample", sample, "", `{"role":"assistant","content":{"type":"text","text":"said"},"model":"m","x-more":true}`},
				{"roots", roots, "", `{"roots":[{"uri":"file:///home","name":"home"}]}`},
			} {
				t.Run(e.name+", "+k.name+", "+q.tool, func(t *testing.T) {
					before := len(c.Asked())
					a := c.CallTool(k.name+"__"+q.tool, "")
					equal(t, "the server got", a.Text(), q.answer)
					all := c.Asked()[before:]
					if len(all) != 1 || all[0].Method != q.method {
						t.Fatalf("the client was asked %v", all)
					}
					equal(t, "the message", all[0].Params.At("message").Str(), q.label)
				})
			}
		}
	}
	for _, k := range kinds {
		if k.era == testmcp.Legacy {
			equal(t, "forms of "+k.name+" that were answered", asked(s.Proxy, k.name, elicit, "ok"), 2)
		}
	}
	if n := s.Metrics().Sum("mcp_proxy_repairs_total", "kind", "label"); n == 0 {
		t.Error("no label was counted")
	}
}

// On the endpoint of one server, and where the configuration says so, questions come without the server's name.
func TestQuestionsWithoutTheNameOfTheServer(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	bare := startAll(t, kinds, "asker", "", `"elicitation":{"label":false}`)
	for _, e := range eras {
		for _, k := range kinds {
			one := client(t, s.Proxy, e.era, map[string]string{elicit: `{"action":"decline"}`})
			one.URL = s.Server(k.name)
			all := connect(t, bare.Proxy, e.era, map[string]string{elicit: `{"action":"decline"}`})
			for c, tool := range map[*testmcp.Client]string{one.Open(): "ask", all: k.name + "__ask"} {
				equal(t, "the answer", c.CallTool(tool, "").Text(), `{"action":"decline"}`)
				equal(t, e.name+", "+k.name+": the message", c.Asked()[0].Params.At("message").Str(), "Which?")
			}
		}
	}
}

// Clients of a revision that knows no modes must not see one; newer ones must see what the server says.
func TestOlderClientsSeeNoMode(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, webNew, "moded", "")
	for version, want := range map[string]bool{testmcp.Rev2506: false, testmcp.Rev2511: true} {
		c := client(t, p, testmcp.Legacy, map[string]string{elicit: `{"action":"accept","content":{"answer":"a"}}`})
		c.Version, c.Capabilities = version, `{"elicitation":{}}`
		c.Open().CallTool("web-new__moded", "")
		equal(t, version+": the mode is there", c.Asked()[0].Params.Has("mode"), want)
	}
}

var _ = behaviour("moded", func() *testmcp.Server {
	s := testmcp.Basic("moded")
	s.Tools = []testmcp.Tool{testmcp.SimpleTool("moded", func(c *testmcp.Call) {
		if r, ok := c.Input("q", elicit, `{"mode":"form","message":"?","requestedSchema":`+answerSchema+`}`); ok {
			c.Text(string(r))
		}
	})}
	return s
})

// Prompts and resources may ask too.
var _ = behaviour("asks-everywhere", func() *testmcp.Server {
	s := testmcp.Basic("asks-everywhere")
	s.Prompts = []testmcp.Prompt{{Definition: `{"name":"ask"}`, Get: func(c *testmcp.Call) {
		if r, ok := c.Input("q", elicit, `{"message":"Prompt?","requestedSchema":`+answerSchema+`}`); ok {
			c.Result(`{"messages":[{"role":"user","content":{"type":"text","text":` + testmcp.Quote(string(r)) + `}}]}`)
		}
	}}}
	s.Resources = []testmcp.Resource{{Definition: `{"uri":"test://ask","name":"ask"}`, Read: func(c *testmcp.Call) {
		if r, ok := c.Input("q", elicit, `{"message":"Resource?","requestedSchema":`+answerSchema+`}`); ok {
			c.Contents("test://ask", string(r))
		}
	}}}
	s.On = map[string]testmcp.Handler{"completion/complete": func(c *testmcp.Call) {
		if c.Modern() {
			c.Default() // it cannot ask here
			return
		}
		if a, err := c.Ask(elicit, `{"message":"Completion?","requestedSchema":`+answerSchema+`}`); err == nil {
			c.Result(`{"completion":{"values":[` + testmcp.Quote(a.At("result", "action").Str()) + `]}}`)
		}
	}}
	return s
})

func TestPromptsAndResourcesMayAsk(t *testing.T) {
	t.Parallel()
	const answer = `{"action":"accept","content":{"answer":"mine"}}`
	for _, k := range kinds {
		p, _ := startOne(t, k, "asks-everywhere", "")
		for _, e := range eras {
			c := connect(t, p, e.era, map[string]string{elicit: answer})
			prompt := c.Call("prompts/get", `{"name":"`+k.name+`__ask"}`)
			equal(t, k.name+", "+e.name+": the prompt", prompt.Result().At("messages", 0, "content", "text").Str(), answer)
			resource := c.Call("resources/read", `{"uri":"test://ask"}`)
			equal(t, k.name+", "+e.name+": the resource", resource.Result().At("contents", 0, "text").Str(), answer)
		}
	}
}

// Completion knows no further rounds in the stateless revision: there its question is declined, not parked.
func TestCompletionCannotAskClientsThatWouldHaveToComeBack(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, webOld, "asks-everywhere", "")
	for _, e := range eras {
		c := connect(t, p, e.era, map[string]string{elicit: `{"action":"accept","content":{"answer":"mine"}}`})
		a := c.Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"web-old__ask"},"argument":{"name":"x","value":""}}`)
		want := map[testmcp.Era]string{testmcp.Legacy: "accept", testmcp.Modern: "decline"}[e.era]
		equal(t, e.name, a.Result().At("completion", "values", 0).Str(), want)
	}
}

// A server that takes its question back: the client is told, and no answer goes up any more.
func TestAQuestionThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, k := range oldKinds {
		p, rec := startOne(t, k, "asker", "")
		c := connect(t, p, testmcp.Legacy, nil)
		answered := make(chan struct{})
		c.Answers[elicit] = func(testmcp.Raw) string {
			<-answered
			return `{"action":"accept","content":{"answer":"too late"}}`
		}
		s := c.Start("tools/call", testmcp.ToolParams(k.name+"__ask-and-withdraw", ""))
		question := s.WaitMethod(elicit)
		rec.Signal("withdraw")
		cancelled := s.WaitMethod("notifications/cancelled")
		equal(t, k.name+": cancelled", cancelled.Params.At("requestId").String(), question.ID.String())
		close(answered)
		rec.Signal("go on")
		equal(t, k.name, s.Final().Text(), "never mind")
		equal(t, k.name+": answers of the client that went up", len(answersOf(rec)), 0)
		equal(t, k.name+": counted", asked(p, k.name, elicit, "cancelled"), 1)
	}
}
