package sessions

import (
	"net/http"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

// asker is an older server with a tool that asks its client once the test says so.
var _ = testmcp.Register("asker", func([]string) *testmcp.Server {
	s := testmcp.Basic("asker")
	s.Era = testmcp.Legacy
	s.Tools = append(s.Tools, testmcp.SimpleTool("later", func(c *testmcp.Call) {
		c.Progress(1, 2, "thinking")
		if !c.Until(c.Args("signal").Str()) {
			return
		}
		if result, ok := c.Input("which", "elicitation/create", `{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}`); ok {
			c.Text(string(result))
		}
	}))
	return s
})

var revisions = []string{testmcp.Rev2503, testmcp.Rev2506, testmcp.Rev2511}

// start starts the program before one child, called up. Under the race detector it would wait for a second before it
// exits.
func start(t *testing.T, settings string, more ...string) (*testmcp.Proxy, *testmcp.Recorder) {
	t.Helper()
	rec := testmcp.NewRecorder(t)
	config := testmcp.Config(settings, map[string]string{"up": rec.Entry("basic", nil, more...)})
	return testmcp.StartProxy(t, config, testmcp.WithEnv("GORACE=atexit_sleep_ms=0")), rec
}

// speaking gives a client that has opened a session of this revision.
func speaking(t *testing.T, url, version string, change ...func(*testmcp.Client)) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, url, testmcp.Legacy)
	c.Version = version
	for _, f := range change {
		f(c)
	}
	return c.Open()
}

// token makes a client send a credential.
func token(value string) func(*testmcp.Client) {
	return func(c *testmcp.Client) { c.Header = http.Header{"Authorization": {"Bearer " + value}} }
}

// answering makes a client that can be asked, and answers.
func answering(c *testmcp.Client) {
	c.Capabilities = `{"elicitation":{}}`
	c.Answers["elicitation/create"] = func(testmcp.Raw) string { return `{"action":"accept","content":{"which":"this"}}` }
}

func echoes(t *testing.T, c *testmcp.Client, what string) {
	t.Helper()
	if text := c.CallTool("up__echo", `{"text":"hello"}`).Text(); text != "hello" {
		t.Errorf("%s: a call gives %q", what, text)
	}
}

// status is the HTTP status of a ping.
func status(c *testmcp.Client) int { return c.Try("ping", "").Status }

// withToken are the parameters of a tool that reports progress.
func withToken(tool, arguments string) string {
	return `{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{"progressToken":"p"}}`
}

// said gives what came as messages: the number of a step, or "answer".
func said(events []testmcp.Event) (out []string) {
	for _, e := range events {
		m := e.Message()
		switch {
		case len(e.Data) == 0:
		case m.Method == "notifications/progress":
			out = append(out, string(m.Params.At("progress")))
		case m.Method == "":
			out = append(out, "answer")
		default:
			out = append(out, m.Method)
		}
	}
	return out
}

// progressed waits until a stream has told of that step.
func progressed(s *testmcp.Stream, step string) {
	s.WaitEvent(func(e testmcp.Event) bool {
		return e.Message().Method == "notifications/progress" && string(e.Message().Params.At("progress")) == step
	})
}

func isAnswer(e testmcp.Event) bool {
	return slices.Equal(said([]testmcp.Event{e}), []string{"answer"})
}
