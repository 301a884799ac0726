package catalog

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
	// entry starts to play the behaviour, or says how to start it, and gives the configuration's entry.
	entry func(t *testing.T, k kind, behaviour string, more []string) (string, *testmcp.Recorder)
}

var kinds = []kind{
	{"pipe-old", testmcp.Legacy, pipeEntry},
	{"pipe-new", testmcp.Modern, pipeEntry},
	{"web-old", testmcp.Legacy, webEntry},
	{"web-new", testmcp.Modern, webEntry},
	{"sse", testmcp.Legacy, sseEntry},
}

var eras = []struct {
	name string
	era  testmcp.Era
}{{"old client", testmcp.Legacy}, {"new client", testmcp.Modern}}

func pipeEntry(t *testing.T, k kind, behaviour string, more []string) (string, *testmcp.Recorder) {
	rec := testmcp.NewRecorder(t)
	return rec.Entry(behaviour, []string{k.eraWord()}, more...), rec
}

func webEntry(t *testing.T, k kind, behaviour string, more []string) (string, *testmcp.Recorder) {
	h := testmcp.ServeHTTP(t, testmcp.Registered(behaviour, k.eraWord()), testmcp.HTTPOptions{})
	return h.Entry(more...), h.Rec
}

func sseEntry(t *testing.T, k kind, behaviour string, more []string) (string, *testmcp.Recorder) {
	h := testmcp.ServeSSE(t, testmcp.Registered(behaviour, k.eraWord()), testmcp.SSEOptions{})
	return h.Entry(append(slices.Clone(more), `"type":"sse"`)...), h.Rec
}

func (k kind) eraWord() string {
	if k.era == testmcp.Modern {
		return "modern"
	}
	return "legacy"
}

// tool gives the exposed name of a tool with a plain name.
func (k kind) tool(wire string) string { return k.name + "__" + wire }

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

// stage is a running proxy with one upstream of each kind.
type stage struct {
	*testmcp.Proxy
	recs map[string]*testmcp.Recorder
}

// startAll starts a proxy before one upstream of each kind with this behaviour; more are members of every entry.
func startAll(t *testing.T, behaviour, settings string, more ...string) stage {
	t.Helper()
	s := stage{recs: map[string]*testmcp.Recorder{}}
	servers := map[string]string{}
	for _, k := range kinds {
		servers[k.name], s.recs[k.name] = k.entry(t, k, behaviour, more)
	}
	s.Proxy = start(t, testmcp.Config(settings, servers))
	return s
}

// startOne starts a proxy before one child with a registered behaviour under the id "one".
func startOne(t *testing.T, behaviour, settings string, more ...string) (*testmcp.Proxy, *testmcp.Recorder) {
	t.Helper()
	rec := testmcp.NewRecorder(t)
	return start(t, testmcp.Config(settings, map[string]string{"one": rec.Entry(behaviour, nil, more...)})), rec
}

// definitions gives the tools of a list by name.
func definitions(c *testmcp.Client) map[string]testmcp.Raw {
	out := map[string]testmcp.Raw{}
	for _, tool := range c.List("tools/list", "tools") {
		out[tool.At("name").Str()] = tool
	}
	return out
}

// same fails the test where two texts differ, and shows where.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	t.Errorf("%s differs at byte %d (…%q):\n got %s\nwant %s", what, n, got[max(0, n-10):min(len(got), n+10)], got, want)
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

// endAtOnce keeps the race detector of the program from waiting a second at each exit.
const endAtOnce = "GORACE=atexit_sleep_ms=0"

func start(t *testing.T, config string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, config, append(opts, testmcp.WithEnv(endAtOnce))...)
}

func run(t *testing.T, files map[string]string, env []string, args ...string) testmcp.Ran {
	t.Helper()
	return testmcp.Run(t, files, append(slices.Clone(env), endAtOnce), args...)
}
