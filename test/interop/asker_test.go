package interop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// childServer names the server that this binary is when the proxy starts it, and childGates where its slow calls wait.
const (
	childServer = "INTEROP_SERVER"
	childGates  = "INTEROP_GATES"
)

// asker is a server of the Go SDK that asks its client. It says what it needs in the way of the new era; for clients of
// the old one its SDK makes requests of that.
type asker struct {
	server *mcp.Server
	note   string // the URI of its resource
	gates  string // the URL where its slow calls wait

	mu   sync.Mutex
	over map[string]chan struct{} // closed when the call of that name was cancelled
}

// newAsker makes a server whose resource has the name in its URI. Its slow tool waits at the gates.
func newAsker(name, gates string) *mcp.Server {
	a := &asker{note: noteOf(name), gates: gates, over: make(map[string]chan struct{})}
	accept := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	forget := func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	a.server = mcp.NewServer(&mcp.Implementation{Name: name, Version: "1.0.0"}, &mcp.ServerOptions{
		SubscribeHandler: accept, UnsubscribeHandler: forget, CompletionHandler: complete,
	})
	mcp.AddTool(a.server, &mcp.Tool{Name: "elicit"}, a.elicit)
	mcp.AddTool(a.server, &mcp.Tool{Name: "page"}, a.page)
	mcp.AddTool(a.server, &mcp.Tool{Name: "sample"}, a.sample)
	mcp.AddTool(a.server, &mcp.Tool{Name: "roots"}, a.roots)
	mcp.AddTool(a.server, &mcp.Tool{Name: "touch"}, a.touch)
	mcp.AddTool(a.server, &mcp.Tool{Name: "wait"}, a.wait)
	mcp.AddTool(a.server, &mcp.Tool{Name: "gone"}, a.gone)
	mcp.AddTool(a.server, &mcp.Tool{Name: "slow"}, a.slow)
	a.server.AddResource(&mcp.Resource{URI: a.note, Name: "note"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: a.note, Text: "a note"}}}, nil
		})
	a.server.AddPrompt(&mcp.Prompt{Name: "pick", Arguments: []*mcp.PromptArgument{{Name: "colour"}}},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
	return a.server
}

func noteOf(name string) string { return "note://" + name + "/page" }

func say(text string) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// ask is the result that asks one thing.
func ask(what mcp.InputRequest) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"it": what}}, nil, nil
}

func (a *asker) elicit(_ context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	answer, ok := req.Params.InputResponses["it"].(*mcp.ElicitResult)
	if !ok {
		schema := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}
		return ask(&mcp.ElicitParams{Message: "Who are you?", RequestedSchema: schema})
	}
	return say(fmt.Sprintf("%s: %v", answer.Action, answer.Content["name"]))
}

// page asks a person to visit one. In the old era that has an id, which the server has to think of.
func (a *asker) page(_ context.Context, req *mcp.CallToolRequest, in struct {
	URL string `json:"url"`
},
) (*mcp.CallToolResult, any, error) {
	answer, ok := req.Params.InputResponses["it"].(*mcp.ElicitResult)
	if !ok {
		visit := &mcp.ElicitParams{Mode: "url", Message: "Please sign in.", URL: in.URL}
		if req.Session.InitializeParams().ProtocolVersion < modernRevision {
			visit.ElicitationID = in.URL
		}
		return ask(visit)
	}
	return say("visited: " + answer.Action)
}

func (a *asker) sample(_ context.Context, req *mcp.CallToolRequest, in struct {
	Prompt string `json:"prompt"`
},
) (*mcp.CallToolResult, any, error) {
	answer, ok := req.Params.InputResponses["it"].(*mcp.CreateMessageWithToolsResult)
	if !ok {
		message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}
		return ask(&mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{message}, MaxTokens: 10})
	}
	var b strings.Builder
	for _, c := range answer.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return say(b.String())
}

func (a *asker) roots(_ context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	answer, ok := req.Params.InputResponses["it"].(*mcp.ListRootsResult)
	if !ok {
		return ask(&mcp.ListRootsParams{})
	}
	var uris []string
	for _, r := range answer.Roots {
		uris = append(uris, r.URI)
	}
	return say(strings.Join(uris, " "))
}

// touch tells the subscribers of the resource that it has changed.
func (a *asker) touch(ctx context.Context, _ *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if err := a.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: a.note}); err != nil {
		return nil, nil, err
	}
	return say("touched")
}

// callName has the name of a call.
type callName struct {
	Call string `json:"call"`
}

// wait tells its progress once and then waits to be cancelled.
func (a *asker) wait(ctx context.Context, req *mcp.CallToolRequest, in callName) (*mcp.CallToolResult, any, error) {
	if err := working(ctx, req); err != nil {
		return nil, nil, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(waitTimeout):
		return say("nobody has cancelled it")
	}
	close(a.ending(in.Call))
	return nil, nil, ctx.Err()
}

// slow tells its progress once and answers when its gate is open.
func (a *asker) slow(ctx context.Context, req *mcp.CallToolRequest, in callName) (*mcp.CallToolResult, any, error) {
	if err := working(ctx, req); err != nil {
		return nil, nil, err
	}
	through, err := http.NewRequestWithContext(ctx, http.MethodGet, a.gates+"/"+url.PathEscape(in.Call), nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := http.DefaultClient.Do(through)
	if err != nil {
		return nil, nil, err
	}
	if err := resp.Body.Close(); err != nil {
		return nil, nil, err
	}
	return say("done")
}

func working(ctx context.Context, req *mcp.CallToolRequest) error {
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: 1, Message: "working",
	})
}

const (
	// waitTimeout ends a call that nobody cancels.
	waitTimeout = time.Minute
	// goneTimeout bounds how long the news that a call is cancelled may take.
	goneTimeout = 20 * time.Second
)

// gone waits until a call of wait was cancelled.
func (a *asker) gone(ctx context.Context, _ *mcp.CallToolRequest, in callName) (*mcp.CallToolResult, any, error) {
	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	select {
	case <-a.ending(in.Call):
		return say(in.Call + " is gone")
	case <-ctx.Done():
		return nil, nil, errors.New(in.Call + " was not cancelled")
	}
}

func (a *asker) ending(name string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over[name] == nil {
		a.over[name] = make(chan struct{})
	}
	return a.over[name]
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	var values []string
	for _, colour := range []string{"green", "grey", "red"} {
		if strings.HasPrefix(colour, req.Params.Argument.Value) {
			values = append(values, colour)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values}}, nil
}

// startAsker serves one over HTTP, in the one era or the other, and gives its URL.
func startAsker(t *testing.T, name string, stateless bool, gates string) string {
	t.Helper()
	server := newAsker(name, gates)
	// In the new era a stream that the client closes is a cancel; the SDK wants to be told so.
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: stateless, PropagateRequestCancellation: true}))
	t.Cleanup(web.Close)
	return web.URL
}
