package bridge

import (
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The server of most tests here: its tools ask the client.
var _ = behaviour("asker", func() *testmcp.Server {
	s := testmcp.Basic("asker")
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("ask", ask),
		testmcp.SimpleTool("ask-and-wait", askAndWait),
		testmcp.SimpleTool("ask-twice", askTwice),
		testmcp.SimpleTool("ask-together", askTogether),
		testmcp.SimpleTool("ask-outside", askOutside),
		testmcp.SimpleTool("ask-and-withdraw", askAndWithdraw),
		testmcp.SimpleTool("ask-with-tools", askWithTools),
		testmcp.SimpleTool("visit", visit),
		testmcp.SimpleTool("visit-first", visitFirst),
		testmcp.SimpleTool("wait-and-ask", waitAndAsk),
	)
	return s
})

const answerSchema = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`

// form is an elicitation of one answer; the call may say the question.
func form(c *testmcp.Call) string {
	question := c.Args("question").Str()
	if question == "" {
		question = "Which?"
	}
	return `{"message":` + testmcp.Quote(question) + `,"requestedSchema":` + answerSchema + `}`
}

// ask answers with what the client answered.
func ask(c *testmcp.Call) {
	if result, ok := c.Input("q", elicit, form(c)); ok {
		c.Text(string(result))
	}
}

func askAndWait(c *testmcp.Call) {
	result, ok := c.Input("q", elicit, form(c))
	if !ok {
		return
	}
	c.Note("has the answer")
	if c.Until("go on") {
		c.Text(string(result))
	}
}

// waitAndAsk asks once the test says so.
func waitAndAsk(c *testmcp.Call) {
	if c.Until("ask") {
		ask(c)
	}
}

// askTogether asks once the test says so, and answers once it says that too, so that many calls ask while none has ended.
func askTogether(c *testmcp.Call) {
	if !c.Until("ask") {
		return
	}
	if result, ok := c.Input("q", elicit, form(c)); ok && c.Until("go on") {
		c.Text(string(result))
	}
}

func askTwice(c *testmcp.Call) {
	first, ok := c.Input("one", elicit, `{"message":"First?","requestedSchema":`+answerSchema+`}`)
	if !ok {
		return
	}
	if second, ok := c.Input("two", elicit, `{"message":"Second?","requestedSchema":`+answerSchema+`}`); ok {
		c.Text(string(first) + string(second))
	}
}

// askOutside asks on a channel that says nothing of the call: only legacy servers can.
func askOutside(c *testmcp.Call) {
	answer, err := c.AskElsewhere(c.Args("method").Str(), `{"message":"Who are you?","requestedSchema":{"type":"object"},"messages":[],"maxTokens":1}`)
	if err != nil {
		c.ToolError(err.Error())
		return
	}
	c.Text(string(answer))
}

// askAndWithdraw asks, takes the question back, and answers once the test says so.
func askAndWithdraw(c *testmcp.Call) {
	c.Frame(`{"jsonrpc":"2.0","id":"mine","method":"elicitation/create","params":` + form(c) + `}`)
	if c.Until("withdraw") {
		c.Notify("notifications/cancelled", `{"requestId":"mine","reason":"never mind"}`)
	}
	if c.Until("go on") {
		c.Text("never mind")
	}
}

func askWithTools(c *testmcp.Call) {
	if result, ok := c.Input("q", sample, `{"messages":[],"maxTokens":1,"tools":[]}`); ok {
		c.Text(string(result))
	}
}

// visit asks the person to visit a page.
func visit(c *testmcp.Call) {
	id := `,"elicitationId":"visit-1"`
	if c.Modern() {
		id = ""
	}
	if result, ok := c.Input("page", elicit, `{"mode":"url","message":"Sign in.","url":"https://example.org/in"`+id+`}`); ok {
		c.Text(string(result))
	}
}

// visitFirst refuses the first call until a page has been visited, as legacy servers do.
func visitFirst(c *testmcp.Call) {
	if c.Instance().Add("visits", 1) > 1 {
		c.Text("welcome")
		return
	}
	c.Error(-32042, "Sign in first.", `{"elicitations":[null,{"mode":"url","elicitationId":"v1","message":"Sign in.","url":"https://example.org/in"}]}`)
}
