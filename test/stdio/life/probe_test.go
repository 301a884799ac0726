package life

import (
	"os"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// probed is a legacy server that takes the question for its era badly, in the way of its first argument.
var _ = testmcp.Register("probed", func(args []string) *testmcp.Server {
	s := testmcp.Basic("probed")
	s.Era = testmcp.Legacy
	s.On = map[string]testmcp.Handler{"server/discover": badProbes[args[0]]}
	return s
})

var badProbes = map[string]testmcp.Handler{
	"exits":               testmcp.Exits(1),
	"crashes":             func(c *testmcp.Call) { c.Process().Crash() },
	"exits with a word":   func(c *testmcp.Call) { c.Process().Stderr("panic: expected initialize\n"); c.Process().Exit(101) },
	"refuses and exits":   func(c *testmcp.Call) { c.Error(-32600, "expected initialize", ""); c.Process().Exit(1) },
	"prints a plain text": func(c *testmcp.Call) { c.Process().Stdout("error: expected initialize request\n") },
	"says nothing":        testmcp.Ignores,
	"refuses":             testmcp.Errors(-32601, "no such method"),
	"refuses oddly":       func(c *testmcp.Call) { c.RawError(`"expected initialize"`) },
	"answers with junk":   func(c *testmcp.Call) { c.RawResult(`"junk"`) },
}

// starts says how many processes it takes until such a server is usable.
var starts = map[string]int{"exits": 2, "crashes": 2, "exits with a word": 2, "refuses and exits": 2}

func TestTheQuestionForTheEraCostsAnOldServerAtMostOneStart(t *testing.T) {
	for kind := range badProbes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
				"up": rec.Entry("probed", []string{kind}, `"restart":{"initial_delay":"10ms"}`),
			}))
			want := max(1, starts[kind])
			usable(t, p, rec, want)
			if n := rec.Count(testmcp.Received("server/discover")); n != 1 {
				t.Errorf("it was asked %d times", n)
			}
			// The era is known now: neither a new process is asked, nor one of the next run of the program.
			p.Client(testmcp.Legacy).CallTool("up__crash", "")
			rec.WaitN(t, want+1, testmcp.Is(testmcp.Start))
			usable(t, p, rec, want+1)
			p.Restart()
			usable(t, p, rec, want+2)
			if n := rec.Count(testmcp.Received("server/discover")); n != 1 {
				t.Errorf("it was asked %d times in all", n)
			}
		})
	}
}

// usable waits for the connection, makes a call of each era and compares the number of processes so far.
func usable(t *testing.T, p *testmcp.Proxy, rec *testmcp.Recorder, processes int) {
	t.Helper()
	ready(t, p, "up")
	for name, era := range stdio.Eras {
		if a := p.Client(era).CallTool("up__echo", `{"text":"here"}`); a.Text() != "here" {
			t.Fatalf("%s client: %.300s", name, a.Raw)
		}
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != processes {
		t.Errorf("%d processes were started, want %d", n, processes)
	}
}

func ready(t *testing.T, p *testmcp.Proxy, id string) {
	t.Helper()
	testmcp.Eventually(t, "connection with "+id, func() bool {
		st := stdio.UpstreamStatus(p, id)
		return st.At("state").Str() == "ready" && st.At("tools").Int() > 0
	})
}

func TestAServerWhoseEraIsSetIsNotAsked(t *testing.T) {
	for _, protocol := range []string{"legacy", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			other := "initialize"
			if protocol == "legacy" {
				other = "server/discover"
			}
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
				"up": rec.Entry("grown", nil, `"protocol":"`+protocol+`"`),
			}))
			usable(t, p, rec, 1)
			if n := rec.Count(testmcp.Received(other)); n != 0 {
				t.Errorf("it was sent %s", other)
			}
		})
	}
}

// grown speaks the era that its environment names, so that the same command may be another server tomorrow.
var _ = testmcp.Register("grown", func([]string) *testmcp.Server {
	s := testmcp.Basic("grown")
	switch os.Getenv("GROWN_ERA") {
	case "modern":
		s.Era = testmcp.Modern
	case "legacy":
		s.Era = testmcp.Legacy
	case "legacy that exits":
		s.Era = testmcp.Legacy
		s.On = map[string]testmcp.Handler{"server/discover": testmcp.Exits(1)}
	}
	return s
})

func TestAnEraThatIsNoLongerTrueIsFoundAgain(t *testing.T) {
	for _, tt := range []struct{ before, after string }{
		{"legacy", "modern"}, {"modern", "legacy"}, {"modern", "legacy that exits"},
	} {
		t.Run(tt.before+" to "+tt.after, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			config := func(era string) string {
				return testmcp.Config("", map[string]string{"up": stdio.EntryWith(rec, map[string]string{"GROWN_ERA": era}, "grown", nil, `"restart":{"initial_delay":"10ms"}`)})
			}
			p := testmcp.StartProxy(t, config(tt.before))
			ready(t, p, "up")
			p.WriteConfig(config(tt.after))
			p.Restart()
			ready(t, p, "up")
			for name, era := range stdio.Eras {
				if a := p.Client(era).CallTool("up__echo", `{"text":"here"}`); a.Text() != "here" {
					t.Errorf("%s client: %.300s", name, a.Raw)
				}
			}
		})
	}
}
