package framing

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// separators holds what some line readers take for the end of a line although it is none.
const separators = "before\u2028after\u2029end\u0085of\fpage\vand\x1cfile\x1dgroup\x1erecord"

// separated is a server that says it everywhere. JSON wants control characters escaped; the others stand as they are.
var _ = testmcp.Register("separated", func(args []string) *testmcp.Server {
	s := testmcp.Basic("separated")
	s.Era = stdio.Era(args)
	s.Tools = append(s.Tools,
		testmcp.Tool{
			Definition: `{"name":"described","description":` + testmcp.Quote(separators) + `,"inputSchema":{"type":"object"}}`,
			Handle:     func(c *testmcp.Call) { c.Text(separators) },
		},
		testmcp.SimpleTool("unescaped", func(c *testmcp.Call) {
			c.Result(`{"content":[{"type":"text","text":"` + "before\u2028after\u2029end\u0085" + `"}]}`)
		}),
	)
	return s
})

func TestLineSeparatorsInStringsAreNoLineEnds(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "separated", nil)}))
			for name, era := range stdio.Eras {
				c := p.Client(era)
				checkSeparators(t, name+": description", descriptionOf(c, "up__described"))
				checkSeparators(t, name+": result", c.CallTool("up__described", "").Text())
				checkSeparators(t, name+": there and back", c.CallTool("up__echo", `{"text":`+testmcp.Quote(separators)+`}`).Text())
				if got := c.CallTool("up__unescaped", "").Text(); got != "before\u2028after\u2029end\u0085" {
					t.Errorf("%s: what was not escaped is %q", name, got)
				}
				unescaped := `{"text":"` + "a\u2028b\u2029c\u0085d" + `"}`
				if got := c.CallTool("up__echo", unescaped).Text(); got != "a\u2028b\u2029c\u0085d" {
					t.Errorf("%s: an argument that was not escaped is %q", name, got)
				}
			}
		})
	}
}

func descriptionOf(c *testmcp.Client, tool string) string {
	for _, def := range c.List("tools/list", "tools") {
		if def.At("name").Str() == tool {
			return def.At("description").Str()
		}
	}
	return ""
}

func checkSeparators(t *testing.T, where, got string) {
	t.Helper()
	if got != separators {
		t.Errorf("%s: %q, want %q", where, got, separators)
	}
}

// edges writes each frame of a child in the way of its second argument.
var _ = testmcp.Register("edges", func(args []string) *testmcp.Server {
	s := testmcp.Basic("edges")
	s.Era = stdio.Era(args)
	s.Write = edgeForms[args[2]]
	s.Tools = append(s.Tools, testmcp.SimpleTool("steps", func(c *testmcp.Call) {
		c.Progress(1, 2, "one")
		c.Progress(2, 2, "two")
		c.Text("done")
	}))
	return s
})

// notice is a message for nobody that stands on the same line as another one.
const notice = `{"jsonrpc":"2.0","method":"notifications/nothing","params":{"x":"}{"}}`

var edgeForms = map[string]func(int, []byte) []byte{
	"byte order mark first":     testmcp.Banner(testmcp.ByteOrderMark),
	"byte order mark and CRLF":  func(n int, f []byte) []byte { return []byte(testmcp.ByteOrderMark + string(f) + "\r\n") },
	"CRLF":                      testmcp.EndingWith("\r\n"),
	"blank at the end":          testmcp.EndingWith(" \n"),
	"tab and CRLF":              testmcp.EndingWith("\t\r\n"),
	"blanks at the start":       testmcp.NoiseBeforeEach(" \t "),
	"empty lines between":       testmcp.NoiseBeforeEach("\n\r\n \n"),
	"one message before":        testmcp.NoiseBeforeEach(notice),
	"one message behind":        testmcp.EndingWith(notice + "\n"),
	"messages on both sides":    func(_ int, f []byte) []byte { return []byte(notice + " " + string(f) + notice + "\r\n") },
	"every answer in an array":  testmcp.InArray,
	"every answer twice":        testmcp.Twice,
	"byte by byte, CR and LF":   func(_ int, f []byte) []byte { return append(append([]byte("\r"), f...), "\r\r\n"...) },
	"NUL bytes around messages": func(_ int, f []byte) []byte { return []byte("\x00" + string(f) + "\x00\n") },
}

func TestWhatStandsAroundAMessageCostsNothing(t *testing.T) {
	for _, way := range stdio.Pipes() {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			recs, entries := map[string]*testmcp.Recorder{}, map[string]string{}
			for form := range edgeForms {
				id := strings.NewReplacer(" ", "-", ",", "").Replace(form)
				recs[id] = testmcp.NewRecorder(t)
				entries[id] = way.Entry(t, recs[id], "edges", []string{form})
			}
			p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"1m"}`, entries))
			for id, rec := range recs {
				c := testmcp.Connect(t, p.Server(id), testmcp.Legacy)
				if got := c.CallTool("echo", `{"text":"hello"}`).Text(); got != "hello" {
					t.Errorf("%s: echo gives %q", id, got)
				}
				s := c.Start("tools/call", `{"name":"steps","arguments":{},"_meta":{"progressToken":"mine"}}`)
				a := s.Final()
				if n := len(messages(a.Before)); n != 2 || a.Text() != "done" {
					t.Errorf("%s: %d messages before the answer %s, want 2", id, n, a.Raw)
				}
				if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
					t.Errorf("%s: it was started %d times", id, n)
				}
			}
		})
	}
}
