package bridge

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A client that is asked and goes away, for longer than it may or for good, has dismissed the question: the server is told
// so and waits for nobody, and hears that the call is given up.
func TestAQuestionWhoseClientIsGone(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(c *testmcp.Client, s *testmcp.Stream){
		"loses its connection": func(_ *testmcp.Client, s *testmcp.Stream) { s.Close() },
		"ends its session":     func(c *testmcp.Client, _ *testmcp.Stream) { c.Delete() },
		"cancels":              func(c *testmcp.Client, s *testmcp.Stream) { c.Cancel(s) },
	} {
		for _, k := range oldKinds {
			for _, q := range []struct{ tool, method, answer string }{{"ask", elicit, `"action":"cancel"`}, {"sample", sample, `"code":-32603`}} {
				t.Run(name+", "+k.name+", "+q.tool, func(t *testing.T) {
					t.Parallel()
					p, rec := startOne(t, k, "asker", `{"sessions":{"resume_window":"200ms"}}`)
					c := connect(t, p, testmcp.Legacy, nil)
					never := make(chan struct{})
					defer close(never)
					c.Answers[q.method] = func(testmcp.Raw) string { <-never; return "{}" }
					call := c.Start("tools/call", testmcp.ToolParams(k.name+"__"+q.tool, ""))
					call.WaitMethod(q.method)
					leave(c, call)
					rec.Wait(t, testmcp.Received("notifications/cancelled"))
					rec.WaitFor(t, "an answer", func() bool { return len(answersOf(rec)) == 1 })
					holds(t, "the server got", answersOf(rec)[0], q.answer)
					other := connect(t, p, testmcp.Legacy, nil)
					equal(t, "a call afterwards", other.CallTool(k.name+"__echo", `{"text":"on"}`).Text(), "on")
				})
			}
		}
	}
}
