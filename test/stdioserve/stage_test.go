package stdioserve

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

// way is one of the two ways to serve a client over pipes.
type way struct {
	name string
	open func(t *testing.T, era testmcp.Era, config string) *testmcp.PipeClient
}

var ways = []way{
	{"own servers", func(t *testing.T, era testmcp.Era, config string) *testmcp.PipeClient {
		return testmcp.StartStdio(t, era, config)
	}},
	{"bridge", func(t *testing.T, era testmcp.Era, config string) *testmcp.PipeClient {
		return connect(t, era, testmcp.StartProxy(t, config))
	}},
}

// connect starts a bridge to a running proxy.
func connect(t *testing.T, era testmcp.Era, p *testmcp.Proxy) *testmcp.PipeClient {
	t.Helper()
	return testmcp.NewPipeClient(t, era, nil, testmcp.Binary(t), "stdio", "--url", p.URL)
}

var eras = []struct {
	name string
	era  testmcp.Era
}{{"old client", testmcp.Legacy}, {"new client", testmcp.Modern}}

// stage is one client before one well-behaved server with the id "one".
type stage struct {
	*testmcp.PipeClient
	rec *testmcp.Recorder
	era testmcp.Era
	way string
}

// everyWay runs a test for both ways and both eras. The client is opened.
func everyWay(t *testing.T, test func(t *testing.T, s stage)) {
	for _, w := range ways {
		for _, e := range eras {
			t.Run(w.name+", "+e.name, func(t *testing.T) {
				rec := testmcp.NewRecorder(t)
				c := w.open(t, e.era, one(rec, ""))
				test(t, stage{PipeClient: c.Open(), rec: rec, era: e.era, way: w.name})
			})
		}
	}
}

// one is a configuration with one server.
func one(rec *testmcp.Recorder, settings string) string {
	return testmcp.Config(settings, map[string]string{"one": rec.Entry("basic", nil)})
}

// leaves ends the client and checks that the program ends in order, and has written nothing but messages.
func (s stage) leaves(t *testing.T) {
	t.Helper()
	leaves(t, s.PipeClient)
	if s.way == "own servers" {
		s.rec.WaitGone(t)
	}
}

func leaves(t *testing.T, c *testmcp.PipeClient) {
	t.Helper()
	code, err := c.Close()
	if code != 0 || err != nil {
		t.Errorf("after the end of stdin: exit code %d, %v; stderr: %s", code, err, c.Stderr())
	}
	for _, m := range c.Lines() {
		if m.Raw.At("jsonrpc").Str() != "2.0" && len(m.Raw.Items()) == 0 {
			t.Errorf("stdout carries what is no message: %s", m.Raw)
		}
	}
}

// silent fails the test where a request has been answered. It is asked after something later has been.
func silent(t *testing.T, c *testmcp.PipeClient, id string) {
	t.Helper()
	for _, m := range c.Lines() {
		if m.Method == "" && string(m.ID) == id {
			t.Errorf("request %s, which was cancelled, was answered: %s", id, m.Raw)
		}
	}
}

func text(m testmcp.Message) string { return m.Result().At("content", 0, "text").Str() }

func method(name string) func(testmcp.Message) bool {
	return func(m testmcp.Message) bool { return m.Method == name }
}

func wantText(t *testing.T, what string, m testmcp.Message, want string) {
	t.Helper()
	if got := text(m); got != want {
		t.Errorf("%s is answered with %s, want the text %q", what, m.Raw, want)
	}
}
