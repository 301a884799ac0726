package door

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

// The codes that clients are answered with.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeHeaderMismatch = -32020
	codeRevision       = -32022
)

// server is the upstream of most tests: the basic one, with tools whose answers tell who asked. Its argument is the
// era that it speaks.
func server(args []string) *testmcp.Server {
	s := testmcp.Basic("door")
	switch strings.Join(args, "") {
	case "legacy":
		s.Era = testmcp.Legacy
	case "modern":
		s.Era = testmcp.Modern
	}
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("hold", func(c *testmcp.Call) {
			c.Note("holding " + c.Args("text").Str())
			if c.Until(c.Args("signal").Str()) {
				c.Text(c.Args("text").Str())
			}
		}),
		testmcp.SimpleTool("later", func(c *testmcp.Call) {
			late := time.NewTimer(time.Duration(c.Args("ms").Int()) * time.Millisecond)
			defer late.Stop()
			select {
			case <-late.C:
				c.Text(c.Args("text").Str())
			case <-c.Context().Done():
			}
		}),
		testmcp.SimpleTool("says", says),
		testmcp.SimpleTool("secret", func(c *testmcp.Call) { c.Text("secret") }),
		testmcp.SimpleTool("grüße", func(c *testmcp.Call) { c.Text("grüße") }),
	)
	s.Resources = append(s.Resources, testmcp.Resource{Definition: `{"uri":"test://door/größe","name":"größe"}`,
		Read: func(c *testmcp.Call) { c.Contents(c.Params.At("uri").Str(), "größe") }})
	return s
}

// says reports each step under the caller's token with the caller's own words, and waits for a signal before the last.
func says(c *testmcp.Call) {
	steps := max(c.Args("steps").Int(), 1)
	for i := 1; i <= steps; i++ {
		if signal := c.Args("signal").Str(); signal != "" && i == steps && !c.Until(signal) {
			return
		}
		c.Progress(float64(i), float64(steps), c.Args("text").Str())
	}
	c.Text(c.Args("text").Str())
}

var _ = testmcp.Register("door", server)

// place is a way in which an upstream runs.
type place struct {
	name string
	era  testmcp.Era // of the upstream
	web  bool        // has HTTP headers
	// entry serves the registered behaviour and gives its entry in the configuration.
	entry func(t testing.TB, rec *testmcp.Recorder, more ...string) string
}

func child(era string) func(testing.TB, *testmcp.Recorder, ...string) string {
	return func(_ testing.TB, rec *testmcp.Recorder, more ...string) string {
		return rec.Entry("door", []string{era}, more...)
	}
}

func web(era string) func(testing.TB, *testmcp.Recorder, ...string) string {
	return func(t testing.TB, rec *testmcp.Recorder, more ...string) string {
		return testmcp.ServeHTTP(t, server([]string{era}), testmcp.HTTPOptions{Recorder: rec}).Entry(more...)
	}
}

func sse(t testing.TB, rec *testmcp.Recorder, more ...string) string {
	return testmcp.ServeSSE(t, server(nil), testmcp.SSEOptions{Recorder: rec}).Entry(append(more, `"type":"sse"`)...)
}

var places = []place{
	{"legacy child", testmcp.Legacy, false, child("legacy")},
	{"modern child", testmcp.Modern, false, child("modern")},
	{"legacy HTTP", testmcp.Legacy, true, web("legacy")},
	{"modern HTTP", testmcp.Modern, true, web("modern")},
	{"HTTP+SSE", testmcp.Legacy, true, sse},
}

var eras = []struct {
	name string
	era  testmcp.Era
}{{"legacy client", testmcp.Legacy}, {"modern client", testmcp.Modern}}

// start starts the program. Under the race detector it would wait for a second before it exits.
func start(t testing.TB, settings string, servers map[string]string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	opts = append(opts, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	return testmcp.StartProxy(t, testmcp.Config(settings, servers), opts...)
}

// everywhere starts one proxy with the upstream in every place, under the names up0, up1 and so on.
func everywhere(t *testing.T, settings string) (*testmcp.Proxy, []*testmcp.Recorder) {
	t.Helper()
	servers := map[string]string{}
	var recs []*testmcp.Recorder
	for i, pl := range places {
		rec := testmcp.NewRecorder(t)
		recs = append(recs, rec)
		servers[fmt.Sprintf("up%d", i)] = pl.entry(t, rec)
	}
	return start(t, settings, servers), recs
}

// one starts a proxy with one child, called up.
func one(t *testing.T, settings string, more ...string) (*testmcp.Proxy, *testmcp.Recorder) {
	t.Helper()
	rec := testmcp.NewRecorder(t)
	return start(t, settings, map[string]string{"up": rec.Entry("door", nil, more...)}), rec
}

// later sends a request in the background, for answers that are long in coming.
func later(c *testmcp.Client, id, method, params string) <-chan testmcp.Answer {
	out := make(chan testmcp.Answer, 1)
	go func() { out <- c.Send(id, method, params).Final() }()
	return out
}

// post sends a body with the headers that the client would send for this method, changed by edits: name, value, …;
// an empty value takes the header away.
func post(c *testmcp.Client, body, method, params string, edits ...string) testmcp.Answer {
	return c.Do(http.MethodPost, body, edited(c.HeadersFor(method, params), edits)).Final()
}

func edited(h http.Header, edits []string) http.Header {
	for i := 0; i+1 < len(edits); i += 2 {
		h.Del(edits[i])
		if edits[i+1] != "" {
			h.Set(edits[i], edits[i+1])
		}
	}
	return h
}

// wantRefusal checks status, code and id of an answer.
func wantRefusal(t *testing.T, a testmcp.Answer, status, code int, id string) {
	t.Helper()
	if a.Status != status || a.Code() != code || string(a.ID) != id {
		t.Errorf("HTTP %d, code %d, id %s; want HTTP %d, code %d, id %s: %s", a.Status, a.Code(), a.ID, status, code, id, a.Body)
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("the refusal has the type %q", ct)
	}
}

// wantText checks the first text of a tool result.
func wantText(t *testing.T, a testmcp.Answer, text string) {
	t.Helper()
	if a.Text() != text || a.IsError() {
		t.Errorf("HTTP %d, answer %s %s (%v); want the text %q", a.Status, a.Raw, a.Body, a.Error, text)
	}
}

func isJSON(a testmcp.Answer) bool { return a.Header.Get("Content-Type") == "application/json" }

func isStream(h http.Header) bool { return h.Get("Content-Type") == "text/event-stream" }

// messages gives what came on a stream, without events that only carry an id.
func messages(events []testmcp.Event) (out []testmcp.Message) {
	for _, e := range events {
		if len(e.Data) > 0 {
			out = append(out, e.Message())
		}
	}
	return out
}

// countMethod says how many messages of this method have come on a stream.
func countMethod(s *testmcp.Stream, method string) (n int) {
	for _, m := range messages(s.Events()) {
		if m.Method == method {
			n++
		}
	}
	return n
}
