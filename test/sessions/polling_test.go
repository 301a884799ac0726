package sessions

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// polled starts a server that ends the stream of a call before its answer and lets its client come back for it. It
// answers once the channel gives something.
func polled(t *testing.T) (entry string, answer chan struct{}) {
	t.Helper()
	answer = make(chan struct{}, 1)
	server := mcp.NewServer(&mcp.Implementation{Name: "polled", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
		select {
		case <-answer:
		case <-ctx.Done():
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	opts := &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		h.Close()
	})
	return fmt.Sprintf(`{"url":%q,"protocol":"legacy"}`, h.URL), answer
}

// A server may end the stream of a call and have its client come back for the answer; that goes for our client too.
func TestAStreamThatTheServerEndsEndsHereToo(t *testing.T) {
	t.Parallel()
	entry, answer := polled(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	c := speaking(t, p.URL, testmcp.Rev2511)
	for range 2 { // what is left of the connection must not harm the next call
		held := c.Start("tools/call", testmcp.ToolParams("up__slow", `{}`))
		if !held.WaitOver() {
			t.Fatal("the stream stays open")
		}
		events := held.Events()
		last := events[len(events)-1]
		if !events[0].HasID || len(events[0].Data) != 0 || last.Retry != "20" {
			t.Fatalf("the stream is %+v", events)
		}
		again := c.Get(held.LastID())
		answer <- struct{}{}
		if a := again.Final(); a.Text() != "done" || string(a.ID) != held.ID {
			t.Errorf("the answer is %s", a.Raw)
		}
	}
	echoed := c.Start("tools/call", testmcp.ToolParams("up__slow", `{}`))
	echoed.WaitOver()
	answer <- struct{}{}
	testmcp.Eventually(t, "answer", func() bool {
		return p.Metrics().Sum("mcp_proxy_requests_total", "upstream", "up", "method", "tools/call", "outcome", "ok") == 3
	})
	if a := c.Get(echoed.LastID()).Final(); a.Text() != "done" {
		t.Errorf("the answer that waited is %s", a.Raw)
	}
}

// Clients of revisions in which a server cannot end a stream so are not made to come back: the answer is fetched for them.
func TestAClientThatCannotComeBackNeedNot(t *testing.T) {
	t.Parallel()
	entry, answer := polled(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry}), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	for _, version := range []string{testmcp.Rev2503, testmcp.Rev2506} {
		answer <- struct{}{}
		c := speaking(t, p.URL, version)
		if a := c.Start("tools/call", testmcp.ToolParams("up__slow", `{}`)).Final(); a.Text() != "done" {
			t.Errorf("%s: the answer is %s", version, a.Raw)
		}
	}
	answer <- struct{}{}
	if a := p.Client(testmcp.Modern).CallTool("up__slow", `{}`); a.Text() != "done" {
		t.Errorf("a new client: the answer is %s", a.Raw)
	}
}
