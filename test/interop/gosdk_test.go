package interop

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK gives a client of the Go SDK that asks for the revision; empty asks for the newest it knows.
func goSDK(revision string) client {
	return func(ctx context.Context, t *testing.T, s stage, v visit) seen {
		session, err := dialGo(ctx, s, revision, planOf("a visitor", "", nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer closeSession(t, session)
		got, err := visitGo(ctx, session, v)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// dialGo connects as the one that the plan is for.
func dialGo(ctx context.Context, s stage, revision string, p plan, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1.0.0"}, o)
	c.AddRoots(&mcp.Root{URI: p.Root, Name: "home"})
	transport := &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(p.Token)}}
	return c.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
}

// bearer shows its token with each request, if there is one.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func closeSession(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	if err := session.Close(); err != nil {
		t.Errorf("closing the session: %v", err)
	}
}

func visitGo(ctx context.Context, session *mcp.ClientSession, v visit) (seen, error) {
	got := seen{Protocol: session.InitializeResult().ProtocolVersion, Texts: make(map[string]string)}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return got, err
		}
		got.Tools = append(got.Tools, tool.Name)
	}
	for prompt, err := range session.Prompts(ctx, nil) {
		if err != nil {
			return got, err
		}
		got.Prompts = append(got.Prompts, prompt.Name)
	}
	for _, c := range v.Calls {
		text, err := callGo(ctx, session, c)
		if err != nil {
			return got, err
		}
		got.Texts[c.Name] = text
	}
	return got, readGo(ctx, session, v, &got)
}

func callGo(ctx context.Context, session *mcp.ClientSession, c call) (string, error) {
	params := &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments}
	params.SetProgressToken(c.Name)
	result, err := session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if result.IsError {
		b.WriteString("ERROR: ")
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String(), nil
}

// readGo gets the prompt and reads the resource.
func readGo(ctx context.Context, session *mcp.ClientSession, v visit, got *seen) error {
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: v.Prompt})
	if err != nil {
		return err
	}
	for _, m := range prompt.Messages {
		if text, ok := m.Content.(*mcp.TextContent); ok {
			got.Prompt += text.Text
		}
	}
	resource, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: v.Resource})
	if err != nil {
		return err
	}
	for _, c := range resource.Contents {
		got.Resource += c.Text
	}
	return nil
}

// waitForTools returns once no tool is missing, and the prompt and the resource of the visit are there. server-everything adds tools after its handshake and says so by a
// notification, which reaches the catalog a moment after the proxy is ready.
func waitForTools(t *testing.T, s stage, p plan, v visit, missingIn func(tools []string) []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	changed := make(chan struct{}, 1)
	session, err := dialGo(ctx, s, legacyRevision, p, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeSession(t, session)
	// A change may have come before this client listened, so the list is read now and then without one, too.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		got, err := visitGo(ctx, session, v)
		missing := missingIn(got.Tools)
		if err == nil && len(missing) == 0 {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("tools not listed: %q: %v", missing, errors.Join(err, ctx.Err()))
		}
	}
}
