package agents

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// serve connects the SDK's client with an agent. stop ends the serving, as an upstream does, and waits for its end.
func serve(t *testing.T, cfg *config.Server, o Options, co *mcp.ClientOptions) (c *mcp.ClientSession, stop func()) {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		defer theirs.Close()
		_ = Serve(ctx, cfg, o, theirs)
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, co).Connect(t.Context(), &mcp.IOTransport{Reader: ours, Writer: ours}, nil)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		_ = ours.Close()
		<-done
	}
	t.Cleanup(func() {
		stop()
		_ = c.Close()
	})
	return c, stop
}

func text(r *mcp.CallToolResult) string {
	if len(r.Content) != 1 {
		return ""
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func TestAFunctionIsATool(t *testing.T) {
	cfg := config.NewFunction("triage helper", "Triage", "Sorts tickets.", 0)
	c, _ := serve(t, cfg, Options{Mask: func(s string) string { return strings.ReplaceAll(s, "sesame", "<secret>") },
		Func: func(_ context.Context, input string) (string, error) {
			switch input {
			case "fail":
				return "", errors.New("no sesame")
			case "panic":
				panic("lost")
			}
			return input + "!", nil
		}}, nil)
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 {
		t.Fatalf("%v, %v", tools, err)
	}
	if tool := tools.Tools[0]; tool.Name != "triage_helper" || tool.Title != "Triage" || tool.Description != "Sorts tickets." {
		t.Errorf("the tool is %+v", tool)
	}
	for input, want := range map[string]string{"hi": "hi!", "": "!", "fail": "agent run failed: no <secret>", "panic": "agent run failed: the function panicked: lost"} {
		r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "triage_helper", Arguments: map[string]any{"input": input}})
		if err != nil || text(r) != want || r.IsError != strings.HasPrefix(want, "agent") {
			t.Errorf("%q gives %+v, %v", input, r, err)
		}
	}
	for _, bad := range []map[string]any{{}, {"input": 5}, {"input": nil}} {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "triage_helper", Arguments: bad})
		if rpc := (*jsonrpc.Error)(nil); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%v gives %v", bad, err)
		}
	}
}

func TestEachRunIsItsOwn(t *testing.T) {
	begun, end := make(chan string, 10), make(chan struct{})
	c, _ := serve(t, config.NewFunction("a", "", "", 0), Options{Func: func(ctx context.Context, input string) (string, error) {
		begun <- input
		select {
		case <-end:
			return input, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}}, nil)
	got := make(chan string, 2)
	for _, input := range []string{"one", "two"} {
		go func() {
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "a", Arguments: map[string]any{"input": input}})
			if err != nil {
				got <- err.Error()
				return
			}
			got <- text(r)
		}()
	}
	<-begun
	<-begun // both run at a time
	close(end)
	all := []string{<-got, <-got}
	if slices.Sort(all); !slices.Equal(all, []string{"one", "two"}) {
		t.Errorf("they answer %q", all)
	}
}

func TestARunEndsWithItsCallAndWithTheServer(t *testing.T) {
	for _, how := range []string{"cancelled", "stopped"} {
		t.Run(how, func(t *testing.T) {
			begun, over := make(chan struct{}), make(chan struct{})
			c, stop := serve(t, config.NewFunction("a", "", "", 0), Options{Func: func(ctx context.Context, _ string) (string, error) {
				close(begun)
				<-ctx.Done()
				close(over)
				return "", ctx.Err()
			}}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: "a", Arguments: map[string]any{"input": "x"}})
			}()
			<-begun
			if how == "cancelled" {
				cancel()
			} else {
				go stop()
			}
			select {
			case <-over:
			case <-time.After(patience):
				t.Fatal("the run goes on")
			}
			<-answered
		})
	}
}

func TestProgressIsTheAnswerAsItGrows(t *testing.T) {
	heard := make(chan string, 100)
	co := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params.Message }}
	cfg := entry(t, `{"kind": "openai", "url": "http://h/v1", "model": "m", "description": "d"}`)
	a := &agent{cfg: cfg.Agent, serving: t.Context(), mask: func(s string) string { return s }, runner: talker{"Hel", "lo ", "there"}}
	s := mcp.NewServer(&mcp.Implementation{Name: "a", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "a", InputSchema: map[string]any{"type": "object"}}, a.call)
	one, two := mcp.NewInMemoryTransports()
	ss, err := s.Connect(t.Context(), one, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, co).Connect(t.Context(), two, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &mcp.CallToolParams{Name: "a", Arguments: map[string]any{"input": "x"}}
	if r, err := c.CallTool(t.Context(), p); err != nil || text(r) != "Hello there" {
		t.Fatalf("%+v, %v", r, err)
	}
	p.SetProgressToken("p")
	if r, err := c.CallTool(t.Context(), p); err != nil || text(r) != "Hello there" {
		t.Fatalf("%+v, %v", r, err)
	}
	var said string
	for said != "Hello there" {
		select {
		case part := <-heard:
			said += part
		case <-time.After(patience):
			t.Fatalf("only %q was said: what is told without a token, or twice, or not at the end is wrong", said)
		}
	}
}

// talker says its parts.
type talker []string

func (t talker) run(_ context.Context, _ string, say func(string)) (string, error) {
	for _, part := range t {
		say(part)
	}
	return strings.Join(t, ""), nil
}

func TestHowACommandGetsItsInput(t *testing.T) {
	for name, tc := range map[string]struct {
		entry string
		args  []string
		stdin string
		err   error
	}{
		"stdin":        {`"args": ["-v"]`, []string{"-v"}, "be kind\n\nhi", nil},
		"last":         {`"args": ["-v"], "input": "argument"`, []string{"-v", "be kind\n\nhi"}, "", nil},
		"in its place": {`"args": ["--ask={input}", "--", "{input}", "{other}"]`, []string{"--ask=be kind\n\nhi", "--", "be kind\n\nhi", "{other}"}, "", nil},
		"zero byte":    {`"input": "argument"`, nil, "", errZeroByte},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := entry(t, `{"kind": "command", "command": "/x", "instructions": "be kind", `+tc.entry+`}`)
			var args []string
			var stdin string
			exec := func(_ context.Context, a []string, in []byte, most int64) (string, error) {
				args, stdin = a, string(in)
				if most != cfg.Agent.MaxAnswerBytes {
					t.Errorf("the bound is %d", most)
				}
				return "", nil
			}
			input := "hi"
			if tc.err != nil {
				input = "h\x00"
			}
			_, err := newRunner(cfg, Options{Exec: exec}).run(t.Context(), input, nil)
			if !errors.Is(err, tc.err) || !slices.Equal(args, tc.args) || stdin != tc.stdin {
				t.Errorf("arguments %q, stdin %q, %v", args, stdin, err)
			}
		})
	}
}

// roundTripper is what programs put in the place of the default transport to watch their requests.
type roundTripper struct{ http.RoundTripper }

func TestTheDefaultTransportIsAnothers(t *testing.T) {
	before := http.DefaultTransport
	http.DefaultTransport = roundTripper{before}
	defer func() { http.DefaultTransport = before }()
	NewClient().CloseIdleConnections()
}
