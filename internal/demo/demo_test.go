package demo

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connected gives a client of a server, over a pipe of one message a line.
func connected(t *testing.T, s *mcp.Server, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, opt).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// said calls a tool and gives its text, marked when it is an error.
func said(t *testing.T, c *mcp.ClientSession, name string, args map[string]any) string {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return "refused: " + err.Error()
	}
	out := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		return "error: " + out
	}
	return out
}

func TestTheClock(t *testing.T) {
	c := connected(t, Clock("1"), nil)
	now, err := time.Parse(time.RFC1123Z, said(t, c, "now", map[string]any{"zone": "UTC"}))
	if err != nil || time.Since(now) > time.Minute || time.Since(now) < -time.Minute {
		t.Errorf("it is %v, %v", now, err)
	}
	if got := said(t, c, "now", map[string]any{"zone": "Nowhere/AtAll"}); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "Nowhere/AtAll") {
		t.Errorf("a zone that does not exist: %s", got)
	}
	for _, n := range []int{0, -1, 61} {
		if got := said(t, c, "wait", map[string]any{"seconds": n}); !strings.Contains(got, "from 1 to 60") {
			t.Errorf("%d seconds: %s", n, got)
		}
	}
}

func TestWaitingReportsItsProgress(t *testing.T) {
	progress := make(chan float64, 10)
	c := connected(t, Clock("1"), &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		progress <- r.Params.Progress
	}})
	p := &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{"seconds": 1}}
	p.SetProgressToken("p")
	r, err := c.CallTool(t.Context(), p)
	if err != nil || r.Content[0].(*mcp.TextContent).Text != "waited 1 s" {
		t.Errorf("%v, %v", r, err)
	}
	if got := <-progress; got != 1 {
		t.Errorf("the progress is %v", got)
	}
}

func TestTheNotes(t *testing.T) {
	c := connected(t, Notes("1"), nil)
	for _, s := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"find", map[string]any{}, "welcome: "},
		{"add", map[string]any{"title": "Milk", "text": "buy it"}, "kept"},
		{"find", map[string]any{"query": "MILK"}, "Milk: buy it"},
		{"find", map[string]any{"query": "BUY"}, "Milk: buy it"},
		{"find", map[string]any{"query": "bread"}, "nothing found"},
		{"add", map[string]any{"title": "", "text": "x"}, "error: a note needs a title"},
		{"add", map[string]any{"title": "long", "text": strings.Repeat("x", maxNoteText)}, "error: a note needs a title"},
	} {
		if got := said(t, c, s.tool, s.args); !strings.HasPrefix(got, s.want) {
			t.Errorf("%s %v: %.80s, want %s", s.tool, s.args, got, s.want)
		}
	}
}

func TestNotesAreBounded(t *testing.T) {
	n := &notes{byTitle: map[string]string{}}
	for i := range maxNotes {
		if err := n.add(strings.Repeat("x", i+1), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n.add("one more", "") == nil {
		t.Error("there is no end")
	}
}

func TestTheGuide(t *testing.T) {
	if got := said(t, connected(t, Guide("1"), nil), "next_steps", nil); !strings.Contains(got, "mcp-proxy serve --config mcp.json") {
		t.Errorf("got %s", got)
	}
}

func TestADemoServerOverHTTP(t *testing.T) {
	s := httptest.NewServer(Handler(Notes("1")))
	defer s.Close()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := said(t, c, "find", nil); !strings.HasPrefix(got, "welcome: ") {
		t.Errorf("got %s", got)
	}
}
