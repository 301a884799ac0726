package interop

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goTalker gives a client of the Go SDK that speaks the revision.
func goTalker(revision string) talker {
	return func(ctx context.Context, t *testing.T, s stage, errands []errand) map[string]told {
		g := &goTalk{updated: make(chan string, 16), progress: make(chan struct{}, 16)}
		var err error
		if g.session, err = dialGo(ctx, s, revision, g.options()); err != nil {
			t.Fatal(err)
		}
		defer closeSession(t, g.session)
		got := make(map[string]told)
		for _, e := range errands {
			if got[e.Server], err = g.run(ctx, e); err != nil {
				t.Errorf("%s: %v", e.Server, err)
			}
		}
		return got
	}
}

// goTalk is one client and what it hears.
type goTalk struct {
	session  *mcp.ClientSession
	asked    []string // written while a call runs, read after it
	updated  chan string
	progress chan struct{}
}

func (g *goTalk) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			g.asked = append(g.asked, req.Params.Message)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := &mcp.TextContent{Text: "a thought of my own"}
			return &mcp.CreateMessageResult{Content: text, Model: "none", Role: "assistant"}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			select {
			case g.updated <- req.Params.URI:
			default: // nobody waits for that many
			}
		},
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) {
			select {
			case g.progress <- struct{}{}:
			default:
			}
		},
	}
}

func (g *goTalk) run(ctx context.Context, e errand) (told, error) {
	var got told
	g.asked = nil
	for _, c := range []struct {
		call *call
		text *string
	}{{e.Elicit, &got.Elicit}, {e.Sample, &got.Sample}, {e.Roots, &got.Roots}} {
		var err error
		if *c.text, err = g.call(ctx, c.call); err != nil {
			return got, err
		}
	}
	got.Asked = g.asked
	if err := g.watch(ctx, e, &got); err != nil {
		return got, err
	}
	if err := g.complete(ctx, e, &got); err != nil {
		return got, err
	}
	if e.Wait != nil {
		got.Waited = g.giveUp(ctx, e.Wait)
	}
	var err error
	got.Gone, err = g.call(ctx, e.Gone)
	return got, err
}

func (g *goTalk) complete(ctx context.Context, e errand, got *told) error {
	if e.Complete == nil {
		return nil
	}
	result, err := g.session.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: e.Complete.Prompt},
		Argument: mcp.CompleteParamsArgument{Name: e.Complete.Argument, Value: e.Complete.Value},
	})
	if err == nil {
		got.Completed = result.Completion.Values
	}
	return err
}

func (g *goTalk) call(ctx context.Context, c *call) (string, error) {
	if c == nil {
		return "", nil
	}
	return callGo(ctx, g.session, *c)
}

// watch subscribes to a resource and waits for its update.
func (g *goTalk) watch(ctx context.Context, e errand, got *told) error {
	if e.Subscribe == "" {
		return nil
	}
	if err := g.session.Subscribe(ctx, &mcp.SubscribeParams{URI: e.Subscribe}); err != nil {
		return err
	}
	if _, err := g.call(ctx, e.Touch); err != nil {
		return err
	}
	for got.Updated != e.Subscribe {
		select {
		case got.Updated = <-g.updated:
		case <-ctx.Done():
			return errors.New("no update of " + e.Subscribe)
		}
	}
	return g.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: e.Subscribe})
}

// giveUp begins a call, waits for its first progress and cancels it. It gives what became of the call.
func (g *goTalk) giveUp(ctx context.Context, c *call) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		select {
		case <-g.progress:
		case <-ctx.Done():
		}
		cancel()
	}()
	params := &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments}
	params.SetProgressToken(c.Name)
	_, err := g.session.CallTool(ctx, params)
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case err != nil:
		return "failed: " + err.Error()
	}
	return "answered"
}
