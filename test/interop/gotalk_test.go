package interop

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goTalker gives a client of the Go SDK that speaks the revision.
func goTalker(revision string) talker {
	return func(ctx context.Context, t *testing.T, s stage, p plan) report {
		g := &goTalk{plan: p, updated: make(map[string]chan struct{}), progress: make(chan struct{}, 16)}
		var err error
		if g.session, err = dialGo(ctx, s, revision, p, g.options()); err != nil {
			t.Fatal(err)
		}
		defer closeSession(t, g.session)
		got, err := g.runAll(ctx)
		if err != nil {
			t.Error(err)
		}
		return report{Protocol: g.session.InitializeResult().ProtocolVersion, Told: got}
	}
}

// goTalk is one client and what it hears.
type goTalk struct {
	plan     plan
	session  *mcp.ClientSession
	progress chan struct{}

	mu      sync.Mutex
	asked   []string
	updated map[string]chan struct{} // closed at the first update of a URI
}

func (g *goTalk) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			RootsV2:     &mcp.RootCapabilities{},
		},
		ElicitationHandler:   g.elicit,
		CreateMessageHandler: g.sample,
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			g.mu.Lock()
			defer g.mu.Unlock()
			if news := g.updated[req.Params.URI]; news != nil {
				close(news)
				delete(g.updated, req.Params.URI)
			}
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			select {
			case g.progress <- struct{}{}:
			default:
			}
		},
	}
}

func (g *goTalk) show(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, what)
}

func (g *goTalk) elicit(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if req.Params.Mode == "url" {
		g.show("url: " + req.Params.Message + " " + req.Params.URL)
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	g.show("form: " + req.Params.Message)
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": g.plan.Who}}, nil
}

func (g *goTalk) sample(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	if text, ok := req.Params.Messages[0].Content.(*mcp.TextContent); ok {
		g.show("sample: " + text.Text)
	}
	text := &mcp.TextContent{Text: "a thought of " + g.plan.Who}
	return &mcp.CreateMessageResult{Content: text, Model: "none", Role: "assistant"}, nil
}

// runAll runs all errands. Servers that update by themselves do so in their own time, and the streams that are cut wait
// for no other.
func (g *goTalk) runAll(ctx context.Context) (map[string]told, error) {
	got := make(map[string]told)
	var faults []error
	var own []func(told) (told, error)
	for _, e := range g.plan.Errands {
		if e.Subscribe == "" || e.Touch != nil {
			own = append(own, nil)
			continue
		}
		wait, err := g.watch(ctx, e)
		faults, own = append(faults, err), append(own, wait)
	}
	resumed := make([]string, len(g.plan.Errands))
	fates := make([]error, len(g.plan.Errands))
	var wg sync.WaitGroup
	for i, e := range g.plan.Errands {
		wg.Go(func() { resumed[i], fates[i] = g.call(ctx, e.Resume) })
	}
	for _, e := range g.plan.Errands {
		one, err := g.run(ctx, e)
		got[e.Server], faults = one, append(faults, err)
	}
	wg.Wait()
	for i, e := range g.plan.Errands {
		one := got[e.Server]
		one.Resumed = resumed[i]
		if own[i] != nil {
			var err error
			one, err = own[i](one)
			faults = append(faults, err)
		}
		got[e.Server] = one
	}
	return got, errors.Join(append(faults, fates...)...)
}

func (g *goTalk) run(ctx context.Context, e errand) (told, error) {
	var got told
	for _, c := range []struct {
		call *call
		text *string
	}{{e.Elicit, &got.Elicit}, {e.Page, &got.Page}, {e.Sample, &got.Sample}, {e.Roots, &got.Roots}} {
		var err error
		if *c.text, err = g.call(ctx, c.call); err != nil {
			return got, err
		}
	}
	g.mu.Lock()
	got.Asked, g.asked = g.asked, nil
	g.mu.Unlock()
	if e.Touch != nil {
		wait, err := g.watch(ctx, e)
		if err != nil {
			return got, err
		}
		if _, err = g.call(ctx, e.Touch); err != nil {
			return got, err
		}
		if got, err = wait(got); err != nil {
			return got, err
		}
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

// watch subscribes to a resource, and gives what waits for its update and notes it.
func (g *goTalk) watch(ctx context.Context, e errand) (func(told) (told, error), error) {
	news := make(chan struct{})
	g.mu.Lock()
	g.updated[e.Subscribe] = news
	g.mu.Unlock()
	if err := g.session.Subscribe(ctx, &mcp.SubscribeParams{URI: e.Subscribe}); err != nil {
		return nil, err
	}
	return func(got told) (told, error) {
		select {
		case <-news:
			got.Updated = e.Subscribe
		case <-ctx.Done():
			return got, errors.New("no update of " + e.Subscribe)
		}
		return got, g.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: e.Subscribe})
	}, nil
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
