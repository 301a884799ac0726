package testmcp

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Basic gives a well-behaved server with one tool for each thing that tests ask of one. It is also registered,
// as "basic"; its argument there is the name. Change the value it gives, to make it misbehave.
//
// Tools: echo{text}, env{name} (pid without a name), count (per session and in all), wait{signal}, hang,
// progress{steps,signal}, log{level}, fail, refuse, big{bytes}, elicit{message}, sample, roots, change (adds a
// tool and says so), exit{code}, crash.
func Basic(name string) *Server {
	return &Server{
		Name:  name,
		Tools: basicTools(),
		Resources: []Resource{{
			Definition: `{"uri":"test://` + name + `/readme","name":"readme","mimeType":"text/plain"}`,
			Read:       func(c *Call) { c.Contents(c.Params.At("uri").Str(), "readme of "+name) },
		}},
		Templates: []string{`{"uriTemplate":"test://` + name + `/item/{id}","name":"item"}`},
		Prompts:   []Prompt{{Definition: `{"name":"greet","arguments":[{"name":"who","required":true}]}`}},
	}
}

var _ = Register("basic", func(args []string) *Server {
	return Basic(strings.Join(args, "-"))
})

// SimpleTool gives a tool that takes any object.
func SimpleTool(name string, h Handler) Tool {
	return Tool{Definition: `{"name":` + Quote(name) + `,"description":` + Quote("The tool "+name+".") + `,"inputSchema":{"type":"object"}}`, Handle: h}
}

// SimpleTools gives n tools that answer with their own names: prefix0001 and so on.
func SimpleTools(prefix string, n int) []Tool {
	var out []Tool
	for i := range n {
		out = append(out, SimpleTool(fmt.Sprintf("%s%04d", prefix, i+1), func(c *Call) { c.Text(c.Params.At("name").Str()) }))
	}
	return out
}

func basicTools() []Tool {
	return []Tool{
		SimpleTool("echo", func(c *Call) { c.Text(c.Args("text").Str()) }),
		SimpleTool("env", toolEnv),
		SimpleTool("count", func(c *Call) {
			c.Text(fmt.Sprintf("%d of %d", c.AddSession("count", 1), c.Instance().Add("count", 1)))
		}),
		SimpleTool("wait", toolWait),
		SimpleTool("hang", (*Call).Hang),
		SimpleTool("progress", toolProgress),
		SimpleTool("log", func(c *Call) {
			c.Log(orElse(c.Args("level").Str(), "info"), `"logged"`)
			c.Text("logged")
		}),
		SimpleTool("fail", func(c *Call) { c.ToolError("failed as asked") }),
		SimpleTool("refuse", func(c *Call) { c.Error(-32000, "refused as asked", `{"why":"asked"}`) }),
		SimpleTool("big", func(c *Call) { c.Text(strings.Repeat("x", c.Args("bytes").Int())) }),
		SimpleTool("elicit", toolAsks("answer", "elicitation/create",
			`{"message":"Which?","requestedSchema":{"type":"object","properties":{"which":{"type":"string"}}}}`)),
		SimpleTool("sample", toolAsks("text", "sampling/createMessage",
			`{"messages":[{"role":"user","content":{"type":"text","text":"Say it."}}],"maxTokens":16}`)),
		SimpleTool("roots", toolAsks("roots", "roots/list", `{}`)),
		SimpleTool("change", toolChange),
		SimpleTool("exit", func(c *Call) { c.Process().Exit(c.Args("code").Int()) }),
		SimpleTool("crash", func(c *Call) { c.Process().Crash() }),
	}
}

func toolEnv(c *Call) {
	if name := c.Args("name").Str(); name != "" {
		c.Text(os.Getenv(name))
		return
	}
	c.Text(strconv.Itoa(os.Getpid()))
}

func toolWait(c *Call) {
	if c.Until(c.Args("signal").Str()) {
		c.Text("waited")
	}
}

// toolProgress reports each step, and before the last one waits for the signal if one is named.
func toolProgress(c *Call) {
	steps := max(c.Args("steps").Int(), 1)
	for i := 1; i <= steps; i++ {
		if s := c.Args("signal").Str(); i == steps && s != "" && !c.Until(s) {
			return
		}
		c.Progress(float64(i), float64(steps), fmt.Sprintf("step %d", i))
	}
	c.Text(fmt.Sprintf("%d steps", steps))
}

// toolAsks asks the client and answers with the raw result that came.
func toolAsks(key, method, params string) Handler {
	return func(c *Call) {
		if result, ok := c.Input(key, method, params); ok {
			c.Text(string(result))
		}
	}
}

func toolChange(c *Call) {
	in := c.Instance()
	n := in.Add("changes", 1)
	in.SetTools(append(in.currentTools(), SimpleTool("added"+strconv.Itoa(n), func(c *Call) { c.Text("added") }))...)
	in.Notify("notifications/tools/list_changed", "")
	c.Text("changed")
}

// Ready-made handlers, for Server.On and for tools.

// Exits ends the child with this code.
func Exits(code int) Handler { return func(c *Call) { c.Process().Exit(code) } }

// Ignores never answers and ends at once.
func Ignores(*Call) {}

// After waits for a signal of the test and goes on with another handler; with nil, with the default.
func After(signal string, then Handler) Handler {
	if then == nil {
		then = (*Call).Default
	}
	return func(c *Call) {
		if c.Until(signal) {
			then(c)
		}
	}
}

// Responds takes over the HTTP response.
func Responds(f http.HandlerFunc) Handler { return func(c *Call) { c.Respond(f) } }

// Errors answers with a JSON-RPC error.
func Errors(code int, message string) Handler {
	return func(c *Call) { c.Error(code, message, "") }
}
