package agents

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// asker is a server with a tool that takes a question, and answers according to its words.
var _ = testmcp.Register("asker", func(args []string) *testmcp.Server {
	return &testmcp.Server{Name: "asker", Era: stdio.Era(args), Tools: []testmcp.Tool{{
		Definition: `{"name":"ask","title":"Ask","description":"answers questions","inputSchema":{"type":"object","properties":{"tone":{"type":"string"},"times":{"type":"integer"},"question":{"type":"string"}},"required":["question","times"]},"outputSchema":{"type":"object"},"x-own":1}`,
		Handle:     answerQuestion,
	}}, Resources: []testmcp.Resource{{Definition: `{"uri":"test://asker/secret","name":"secret"}`}}}
})

func answerQuestion(c *testmcp.Call) {
	switch q := c.Args("question").Str(); q {
	case "hang":
		c.Progress(1, 2, "thinking")
		c.Hang()
	case "count":
		c.Text(strconv.Itoa(c.Instance().Add("count", 1)))
	case "fault":
		c.ToolError("out of paper")
	case "error":
		c.Error(-32602, "no such question", "")
	case "blocks":
		c.Result(`{"content":[{"type":"text","text":"one"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"two"}],"structuredContent":{"a":1},"_meta":{"x":1}}`)
	case "data":
		c.Result(`{"content":[],"structuredContent":{"n":90071992547409931}}`)
	case "die":
		c.Process().Crash()
	case "person":
		answer, err := c.Ask("elicitation/create", `{"message":"which one?","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`)
		if err != nil {
			c.ToolError(err.Error())
			return
		}
		c.Text("the person says " + answer.At("result", "content", "a").Str())
	default:
		c.Text(q + "!")
	}
}

func TestOneToolOfAServerIsAnAgent(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			entry := way.Entry(t, rec, "asker", nil, `"kind":"mcp"`, `"title":"Researcher"`, `"instructions":"be kind"`)
			p := start(t, agents{"re.searcher": entry}.config(settings))
			for name, era := range eras {
				t.Run(name, func(t *testing.T) {
					c := p.Client(era)
					if names := c.ToolNames(); len(names) != 1 {
						t.Errorf("the tools are %q", names)
					}
					def := toolOf(t, c, "re_searcher")
					if want := `{"name":"re_searcher","title":"Researcher","description":"answers questions","inputSchema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}`; string(def) != want {
						t.Errorf("the tool is %s", def)
					}
					if all := c.List("resources/list", "resources"); len(all) != 0 {
						t.Errorf("the resources of the server are offered: %s", all)
					}
					wantText(t, c.CallTool("re_searcher", input("hi")), "be kind\n\nhi!", false)
					for _, bad := range []string{`{}`, `{"question":"hi"}`, `{"input":7}`} {
						if a := c.CallTool("re_searcher", bad); a.Code() != -32602 {
							t.Errorf("the arguments %s give %s", bad, a.Raw)
						}
					}
					if a := c.CallTool("ask", `{"question":"hi"}`); a.Code() != -32602 {
						t.Errorf("the tool behind the agent answers %s", a.Raw)
					}
				})
			}
		})
	}
}

func TestHowAServersAnswersBecomeOneText(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := start(t, agents{"a": way.Entry(t, rec, "asker", nil, `"kind":"mcp"`, `"tool":"ask"`, `"argument":"question"`, `"max_answer_bytes":2000`)}.config(settings))
			for name, era := range eras {
				t.Run(name, func(t *testing.T) {
					c := p.Client(era)
					wantText(t, c.CallTool("a", input("blocks")), "one\ntwo", false)
					wantText(t, c.CallTool("a", input("data")), `{"n":90071992547409931}`, false)
					wantText(t, c.CallTool("a", input("fault")), "out of paper", true)
					wantText(t, c.CallTool("a", input("error")), "agent run failed: no such question", true)
					wantFault(t, c.CallTool("a", input("die")), "agent run failed")
					wantFault(t, c.CallTool("a", input(strings.Repeat("x", 2001))), "max_answer_bytes")
				})
			}
		})
	}
}

func TestEachCallOfAServerThatIsAnAgentIsFresh(t *testing.T) {
	t.Parallel()
	for sharing, want := range map[string][2]string{"call": {"1", "1"}, "shared": {"1", "2"}, "session": {"1", "2"}} {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := start(t, agents{"a": rec.Entry("asker", []string{"legacy"}, `"kind":"mcp"`, `"argument":"question"`, `"sharing":"`+sharing+`"`)}.config(""))
			c := p.Client(testmcp.Legacy)
			if got := [2]string{c.CallTool("a", input("count")).Text(), c.CallTool("a", input("count")).Text()}; got != want {
				t.Errorf("the calls are counted as %q", got)
			}
			if sharing == "call" {
				rec.WaitFor(t, "only the process that lists", func() bool { return len(rec.Live()) == 1 })
			}
		})
	}
}

func TestTheProcessOfAServerEndsWithItsRun(t *testing.T) {
	ways := map[string]func(t *testing.T, c *testmcp.Client, call *testmcp.Stream){
		"timeout": func(t *testing.T, _ *testmcp.Client, call *testmcp.Stream) {
			wantFault(t, call.Final(), "agent run timed out after 2s")
		},
		"cancel":     func(_ *testing.T, c *testmcp.Client, call *testmcp.Stream) { c.Cancel(call) },
		"disconnect": func(_ *testing.T, _ *testmcp.Client, call *testmcp.Stream) { call.Close() },
	}
	for how, end := range ways {
		for name, era := range eras {
			t.Run(how+" "+name, func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				timeout := `"timeout":"10m"`
				if how == "timeout" {
					timeout = `"timeout":"2s"`
				}
				p := start(t, agents{"a": rec.Entry("asker", []string{name}, `"kind":"mcp"`, timeout)}.config(settings))
				c := p.Client(era)
				call := c.Start("tools/call", `{"name":"a","arguments":{"input":"hang"},"_meta":{"progressToken":"p"}}`)
				if m := call.WaitMethod("notifications/progress"); m.Params.At("message").Str() != "thinking" {
					t.Errorf("the progress is %s", m.Raw)
				}
				end(t, c, call)
				rec.WaitFor(t, "only the process that lists", func() bool { return len(rec.Live()) == 1 })
			})
		}
	}
}

func TestAPersonIsAskedThroughAnAgent(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, agents{"a": rec.Entry("asker", []string{"legacy"}, `"kind":"mcp"`)}.config(""))
	c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	c.Capabilities = `{"elicitation":{}}`
	c.Answers["elicitation/create"] = func(testmcp.Raw) string { return `{"action":"accept","content":{"a":"this"}}` }
	c.Open()
	wantText(t, c.CallTool("a", input("person")), "the person says this", false)
}

func TestAnAgentWhoseServerDoesNotFitIsReported(t *testing.T) {
	t.Parallel()
	basic, asker := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
	p := start(t, agents{
		"many":    basic.Entry("basic", nil, `"kind":"mcp"`),
		"nobody":  asker.Entry("asker", []string{"legacy"}, `"kind":"mcp"`, `"tool":"tell"`),
		"missing": `{"kind": "mcp", "command": "/no/such/program"}`,
	}.config(""))
	c := p.Client(testmcp.Legacy)
	if names := c.ToolNames(); len(names) != 0 {
		t.Errorf("the tools are %q", names)
	}
	for id, want := range map[string]string{"many": "name one of them as tool", "nobody": `no tool \"tell\"`, "missing": "cannot start"} {
		if status := string(stdio.UpstreamStatus(p, id)); !strings.Contains(status, want) {
			t.Errorf("the status of %s does not say %s: %s", id, want, status)
		}
	}
}

func TestAToolThatNobodyHasApprovedIsNoAgent(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, agents{"pinned": rec.Entry("asker", []string{"legacy"}, `"kind":"mcp"`), "ours": shell("cat", "")}.config(`{"pin": "strict"}`))
	c := p.Client(testmcp.Modern)
	if names := c.ToolNames(); len(names) != 1 || names[0] != "ours" {
		t.Errorf("the tools are %q", names)
	}
	if a := c.CallTool("pinned", input("hi")); a.Code() != -32602 {
		t.Errorf("it answers %s", a.Raw)
	}
}
