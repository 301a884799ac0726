package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// kind is one way to be an upstream; its name is also the id in the configuration.
type kind struct {
	name string
	era  testmcp.Era
	web  bool
}

var (
	pipeOld = kind{"pipe-old", testmcp.Legacy, false}
	pipeNew = kind{"pipe-new", testmcp.Modern, false}
	webOld  = kind{"web-old", testmcp.Legacy, true}
	webNew  = kind{"web-new", testmcp.Modern, true}
	sse     = kind{"sse", testmcp.Legacy, true}

	kinds    = []kind{pipeOld, pipeNew, webOld, webNew, sse}
	oldKinds = []kind{pipeOld, webOld, sse}
)

var eras = []struct {
	name string
	era  testmcp.Era
}{{"old client", testmcp.Legacy}, {"new client", testmcp.Modern}}

// entry starts to play the behaviour, or says how to start it, and gives the configuration's entry.
func (k kind) entry(t *testing.T, behaviour string, more ...string) (string, *testmcp.Recorder) {
	t.Helper()
	word := "legacy"
	if k.era == testmcp.Modern {
		word = "modern"
	}
	if k == sse {
		h := testmcp.ServeSSE(t, testmcp.Registered(behaviour, word), testmcp.SSEOptions{})
		return h.Entry(append(more, `"type":"sse"`)...), h.Rec
	}
	if k.web {
		h := testmcp.ServeHTTP(t, testmcp.Registered(behaviour, word), testmcp.HTTPOptions{})
		return h.Entry(more...), h.Rec
	}
	rec := testmcp.NewRecorder(t)
	return rec.Entry(behaviour, []string{word}, more...), rec
}

// behaviour registers a server that can be played as every kind.
func behaviour(name string, build func() *testmcp.Server) struct{} {
	return testmcp.Register(name, func(args []string) *testmcp.Server {
		s := build()
		if s.Era = testmcp.Legacy; slices.Contains(args, "modern") {
			s.Era = testmcp.Modern
		}
		return s
	})
}

// stage is a running proxy with one upstream of each of some kinds.
type stage struct {
	*testmcp.Proxy
	recs map[string]*testmcp.Recorder
}

// startAll starts a proxy before one upstream of each kind with this behaviour; more are members of every entry.
func startAll(t *testing.T, of []kind, behaviour, settings string, more ...string) stage {
	t.Helper()
	s := stage{recs: map[string]*testmcp.Recorder{}}
	servers := map[string]string{}
	for _, k := range of {
		servers[k.name], s.recs[k.name] = k.entry(t, behaviour, more...)
	}
	s.Proxy = start(t, testmcp.Config(settings, servers))
	return s
}

// startOne is startAll for one kind.
func startOne(t *testing.T, k kind, behaviour, settings string, more ...string) (*testmcp.Proxy, *testmcp.Recorder) {
	t.Helper()
	s := startAll(t, []kind{k}, behaviour, settings, more...)
	return s.Proxy, s.recs[k.name]
}

// start runs the program. The race detector must not wait a second at each exit.
func start(t *testing.T, config string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, config, append(opts, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))...)
}

const allCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// connect gives a client that can be asked for everything and answers what answers says.
func connect(t *testing.T, p *testmcp.Proxy, era testmcp.Era, answers map[string]string) *testmcp.Client {
	t.Helper()
	return client(t, p, era, answers).Open()
}

// client is connect before the client has said anything.
func client(t *testing.T, p *testmcp.Proxy, era testmcp.Era, answers map[string]string) *testmcp.Client {
	t.Helper()
	c := testmcp.NewClient(t, p.Base+"/mcp", era)
	c.Capabilities = allCapabilities
	for method, answer := range answers {
		c.Answers[method] = func(testmcp.Raw) string { return answer }
	}
	return c
}

const (
	elicit = "elicitation/create"
	sample = "sampling/createMessage"
	roots  = "roots/list"
)

// asked is the number of questions of one upstream that ended so.
func asked(p *testmcp.Proxy, upstream, method, outcome string) int {
	return int(p.Metrics().Sum("mcp_proxy_server_requests_total", "upstream", upstream, "method", method, "outcome", outcome))
}

// holds fails the test where a part is missing in a text.
func holds(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s has no word of %q:\n%s", what, p, text)
		}
	}
}

// equal fails the test where two values differ.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// answersOf are the answers that an upstream got to its questions.
func answersOf(rec *testmcp.Recorder) (out []string) {
	for _, r := range rec.Find(testmcp.Is(testmcp.In)) {
		if r.Method == "" {
			for _, name := range []string{"result", "error"} {
				if v := r.Frame.At(name); v != nil {
					out = append(out, string(v))
				}
			}
		}
	}
	return out
}
