package noise

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// foreign is what servers in the field print on stdout, by name. What has no line end stands on the same line as the
// message after it.
var foreign = map[string]string{
	"emoji":             "🖥️ Server mode: STDIO\n",
	"colours":           "\x1b[32m✔\x1b[0m connected\n",
	"empty-line":        "\n",
	"spinner":           "Loading npm…\r",
	"cleared-line":      "\x1b[2K\x1b[1G",
	"colour-before":     "\x1b[36m",
	"word-before":       "ready ",
	"braces":            "options { verbose, level: [1, 2 } loaded\n",
	"json-in-text":      `config: {"port":3000,"id":1} loaded` + "\n",
	"json-log":          `{"level":30,"time":1700000000,"msg":"listening"}` + "\n",
	"json-log-with-id":  `{"level":30,"id":5,"method":"GET","msg":"request"}` + "\n",
	"json-string":       `"a string"` + "\n",
	"json-null":         "null\n",
	"json-number":       "42\n",
	"json-array":        "[1, 2, 3]\n",
	"empty-array":       "[]\n",
	"empty-object":      "{}\n",
	"open-brace":        "{\n",
	"half-a-message":    `{"jsonrpc":"2.0","method":"notifications/mess` + "\n",
	"not-utf8":          "caf\xe9 \xff\xfe ready\n",
	"utf16":             "R\x00e\x00a\x00d\x00y\x00\n",
	"long-line":         strings.Repeat("progress ", 40_000) + "\n",
	"many-lines":        strings.Repeat("line after line\n", 50),
	"node-warning":      "(node:4711) ExperimentalWarning: buffer.File is experimental\n(Use `node --trace-warnings ...`)\n",
	"python-traceback":  "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'x'\n",
	"content-length":    "Content-Length: 52\r\n\r\n",
	"carriage-returns":  "10%\r20%\r100%\r\n",
	"other-jsonrpc":     `{"jsonrpc":"1.0","status":"ready"}` + "\n",
	"answer-to-nothing": `{"jsonrpc":"2.0","id":"no-such-request","result":{}}` + "\n",
}

// quiet names what is no noise worth a word.
var quiet = map[string]bool{"empty-line": true, "answer-to-nothing": true}

// burst is how many answers the tool of that name sends at a time.
const burst = 5

// chatty prints its second argument before its first message, or before each, as the third one tells.
var _ = testmcp.Register("chatty", func(args []string) *testmcp.Server {
	s := testmcp.Basic("chatty")
	s.Era = stdio.Era(args)
	text := foreign[args[2]]
	s.Write = testmcp.Banner(text)
	if args[3] == "each" {
		s.Write = testmcp.NoiseBeforeEach(text)
	}
	s.Tools = append(s.Tools,
		testmcp.SimpleTool("together", func(c *testmcp.Call) {
			if c.Instance().Add("together", 1) == burst {
				c.Note("all are here")
			}
			if c.Until("burst") {
				c.Text(c.Args("text").Str())
			}
		}),
		// A logger of requests writes the id of the request that is being worked on.
		testmcp.SimpleTool("logged", func(c *testmcp.Call) {
			c.Process().Stdout(`{"level":"info","id":` + string(c.ID) + `,"msg":"handling request"}` + "\n")
			c.Process().Stdout(`{"id":` + string(c.ID) + `,"duration":12,"status":"ok"}` + "\n")
			c.Text("logged")
		}),
	)
	return s
})

// stage starts one upstream for each kind of noise.
func stage(t *testing.T, way stdio.Way, when string, kinds []string) (*testmcp.Proxy, map[string]*testmcp.Recorder) {
	t.Helper()
	recs, entries := map[string]*testmcp.Recorder{}, map[string]string{}
	for _, kind := range kinds {
		recs[kind] = testmcp.NewRecorder(t)
		entries[kind] = way.Entry(t, recs[kind], "chatty", []string{kind, when})
	}
	return testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"1m"}`, entries)), recs
}

// kinds gives the names of all noises, divided so that one machine can take it.
func kinds() [][]string {
	return slices.Collect(slices.Chunk(slices.Sorted(maps.Keys(foreign)), 10))
}

func eachStage(t *testing.T, when string, check func(t *testing.T, p *testmcp.Proxy, kind string, rec *testmcp.Recorder)) {
	for _, way := range stdio.Pipes() {
		for i, some := range kinds() {
			t.Run(way.Name+"-"+strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				p, recs := stage(t, way, when, some)
				for kind, rec := range recs {
					check(t, p, kind, rec)
				}
			})
		}
	}
}

func TestABannerBeforeTheFirstMessageCostsNothing(t *testing.T) {
	eachStage(t, "first", func(t *testing.T, p *testmcp.Proxy, kind string, rec *testmcp.Recorder) {
		c := testmcp.Connect(t, p.Server(kind), testmcp.Legacy)
		if got := c.CallTool("echo", `{"text":"hello"}`).Text(); got != "hello" {
			t.Errorf("%s: echo gives %q; %s", kind, got, stdio.UpstreamStatus(p, kind))
		}
		checkNeverRestarted(t, p, kind, rec)
		checkToldOnce(t, p, kind)
	})
}

func TestLinesBetweenMessagesFailNoCall(t *testing.T) {
	eachStage(t, "each", func(t *testing.T, p *testmcp.Proxy, kind string, rec *testmcp.Recorder) {
		c := testmcp.Connect(t, p.Server(kind), testmcp.Modern)
		var calls []*testmcp.Pending
		for i := range burst {
			calls = append(calls, c.Begin("tools/call", testmcp.ToolParams("together", fmt.Sprintf(`{"text":"%d"}`, i))))
		}
		rec.Wait(t, testmcp.Noted("all are here"))
		rec.Signal("burst")
		for i, call := range calls {
			if a := call.Final(); a.Text() != strconv.Itoa(i) {
				t.Errorf("%s: call %d gives %.300s", kind, i, a.Raw)
			}
		}
		for range 5 {
			if a := c.CallTool("logged", ""); a.Text() != "logged" {
				t.Errorf("%s: a call whose id was logged gives %.300s", kind, a.Raw)
			}
		}
		checkNeverRestarted(t, p, kind, rec)
		checkToldOnce(t, p, kind)
	})
}

func checkNeverRestarted(t *testing.T, p *testmcp.Proxy, kind string, rec *testmcp.Recorder) {
	t.Helper()
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("%s: started %d times", kind, n)
	}
	if n := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", kind); n != 0 {
		t.Errorf("%s: %v restarts are counted", kind, n)
	}
}

// checkToldOnce verifies that noise is counted and has one record in the log, of the first 200 bytes, escaped.
func checkToldOnce(t *testing.T, p *testmcp.Proxy, kind string) {
	t.Helper()
	if n := p.Metrics().Sum("mcp_proxy_dropped_total", "what", "stdout_noise"); n == 0 {
		t.Error("no noise is counted")
	}
	var told []testmcp.Raw
	for _, line := range p.Log() {
		if r := testmcp.Raw(line); r.At("upstream").Str() == kind && strings.Contains(r.At("msg").Str(), "no message") {
			told = append(told, r)
		}
	}
	if len(told) > 1 || len(told) == 0 && !quiet[kind] {
		t.Errorf("%s: told %d times, want once: %s", kind, len(told), told)
	}
	for _, r := range told {
		text, err := strconv.Unquote(r.At("text").Str())
		if err != nil || len(text) > 200 || text == "" {
			t.Errorf("%s: the record has the text %s (%d bytes, %v)", kind, r.At("text"), len(text), err)
		}
	}
}

// dies prints its banner on every start.
var _ = testmcp.Register("dies", func(args []string) *testmcp.Server {
	s := testmcp.Basic("dies")
	s.Era = stdio.Era(args)
	s.Write = testmcp.Banner("=== Server v1.2 starting ===\nhttps://example.com/docs\n")
	return s
})

func TestNoiseOnEveryStartMakesNoSpiral(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "dies", nil, `"restart":{"initial_delay":"10ms"}`)}))
			c := p.Client(testmcp.Legacy)
			for n := 1; n <= 3; n++ {
				for range 10 {
					if a := c.CallTool("up__echo", `{"text":"x"}`); a.Text() != "x" {
						t.Fatalf("start %d: %.300s", n, a.Raw)
					}
				}
				if got := rec.Count(testmcp.Is(testmcp.Start)); got != n {
					t.Fatalf("started %d times, want %d", got, n)
				}
				if n < 3 {
					c.CallTool("up__crash", "")
					rec.WaitN(t, n+1, testmcp.Is(testmcp.Start))
					testmcp.Eventually(t, "a connection", func() bool { return stdio.UpstreamStatus(p, "up").At("state").Str() == "ready" })
				}
			}
			if got := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "up"); got != 2 {
				t.Errorf("%v restarts are counted, want the 2 crashes", got)
			}
		})
	}
}
