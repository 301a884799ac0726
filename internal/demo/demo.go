// Package demo holds the servers that the proxy brings along, so that it can be tried with nothing else installed. They
// are built on the SDK's server and are as independent of the proxy as any other.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Clock is a server about time.
func Clock(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "demo-clock", Title: "Clock", Version: version}, nil)
	type in struct {
		Zone string `json:"zone,omitempty" jsonschema:"IANA name of a time zone such as Europe/Zurich; UTC where it is empty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "now", Description: "Tells the time now.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			loc, err := time.LoadLocation(a.Zone)
			if err != nil {
				return nil, nil, fmt.Errorf("there is no time zone %q", a.Zone)
			}
			return text(time.Now().In(loc).Format(time.RFC1123Z)), nil, nil
		})
	type wait struct {
		Seconds int `json:"seconds" jsonschema:"how long, from 1 to 60"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "Waits, and reports its progress every second."}, waitTool[wait](func(w wait) int { return w.Seconds }))
	return s
}

// waitTool counts seconds, so that progress and cancellation can be seen.
func waitTool[In any](seconds func(In) int) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		n := seconds(in)
		if n < 1 || n > 60 {
			return nil, nil, errors.New("seconds must be from 1 to 60")
		}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for i := 1; i <= n; i++ {
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-tick.C:
			}
			if token := req.Params.GetProgressToken(); token != nil {
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: float64(n)})
			}
		}
		return text(fmt.Sprintf("waited %d s", n)), nil, nil
	}
}

// Notes is a server that keeps notes in memory.
func Notes(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "demo-notes", Title: "Notes", Version: version}, nil)
	n := &notes{byTitle: map[string]string{"welcome": "This note is kept in the memory of the demo server."}}
	type add struct {
		Title string `json:"title" jsonschema:"by which the note is found again"`
		Text  string `json:"text" jsonschema:"what to remember"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Keeps a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, a add) (*mcp.CallToolResult, any, error) {
			if err := n.add(a.Title, a.Text); err != nil {
				return nil, nil, err
			}
			return text("kept"), nil, nil
		})
	type query struct {
		Query string `json:"query,omitempty" jsonschema:"part of a title or text; all notes where it is empty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Finds notes.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, any, error) {
			return text(n.find(q.Query)), nil, nil
		})
	return s
}

// notes are bounded in number and length.
type notes struct {
	mu      sync.Mutex
	byTitle map[string]string
}

const (
	maxNotes    = 1000
	maxNoteText = 10000
)

func (n *notes) add(title, body string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if title == "" || len(title)+len(body) > maxNoteText || len(n.byTitle) >= maxNotes {
		return fmt.Errorf("a note needs a title and at most %d bytes, and there may be %d of them", maxNoteText, maxNotes)
	}
	n.byTitle[title] = body
	return nil
}

func (n *notes) find(query string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []string
	for title, body := range n.byTitle {
		if strings.Contains(strings.ToLower(title+"\n"+body), strings.ToLower(query)) {
			out = append(out, title+": "+body)
		}
	}
	sort.Strings(out)
	if len(out) == 0 {
		return "nothing found"
	}
	return strings.Join(out, "\n")
}

// Guide is a server that tells how to go on from the demo.
func Guide(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "demo-guide", Title: "Guide", Version: version}, nil)
	type none struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "next_steps", Description: "Tells how to put your own servers behind the proxy.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return text("Put the mcp.json of your IDE beside the binary and run: mcp-proxy serve --config mcp.json\nCheck it first with: mcp-proxy check --connect --config mcp.json"), nil, nil
		})
	return s
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// Serve runs a server over a stream of one message a line, until the stream or ctx ends.
func Serve(ctx context.Context, s *mcp.Server, rw io.ReadWriteCloser) error {
	return s.Run(ctx, &mcp.IOTransport{Reader: rw, Writer: rw})
}

// ServeStdio runs a server over this process's stdin and stdout.
func ServeStdio(ctx context.Context, s *mcp.Server) error { return s.Run(ctx, &mcp.StdioTransport{}) }

// Handler serves a server over streamable HTTP.
func Handler(s *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
}
