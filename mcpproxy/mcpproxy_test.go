package mcpproxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/mcpproxy"
)

var eras = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}

// embed makes a Server that is closed with the test.
func embed(t *testing.T, from mcpproxy.Source, options ...mcpproxy.Option) *mcpproxy.Server {
	t.Helper()
	s, err := mcpproxy.New(t.Context(), from, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// serve mounts it.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// basic is a configuration of one child, and the child's recorder.
func basic(t *testing.T, proxy string) (mcpproxy.Source, *testmcp.Recorder) {
	t.Helper()
	rec := testmcp.NewRecorder(t)
	return mcpproxy.Text([]byte(testmcp.Config(proxy, map[string]string{"up": rec.Entry("basic", nil)}))), rec
}

func hello(_ context.Context, input string) (string, error) { return "hello " + input, nil }

func greeter() mcpproxy.Option {
	return mcpproxy.WithFunction("greet er", mcpproxy.Function{Title: "Greeter", Description: "Greets.", Run: hello})
}

func TestTheHandlerServesBothEras(t *testing.T) {
	from, _ := basic(t, `{"profiles": {"kind": {"servers": ["greet er"]}}}`)
	s := embed(t, from, greeter())
	if err := s.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/below/", http.StripPrefix("/below", s.Handler()))
	url := serve(t, mux) + "/below"
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			c := testmcp.Connect(t, url+"/mcp", era)
			if text := c.CallTool("up__echo", `{"text":"hi"}`).Text(); text != "hi" {
				t.Errorf("the child answers %q", text)
			}
			if text := c.CallTool("greet_er", `{"input":"you"}`).Text(); text != "hello you" {
				t.Errorf("the function answers %q", text)
			}
			if names := testmcp.Connect(t, url+"/profiles/kind/mcp", era).ToolNames(); !slices.Equal(names, []string{"greet_er"}) {
				t.Errorf("the profile has %q", names)
			}
		})
	}
	for _, page := range []string{"/readyz", "/metrics", "/api/v1/status"} {
		if code := get(t, url+page, ""); code != http.StatusOK {
			t.Errorf("%s gives %d", page, code)
		}
	}
	if code := get(t, url+"/mcp", "evil.example"); code != http.StatusForbidden {
		t.Errorf("a page that was turned against this machine gets %d", code)
	}
}

func get(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestCloseEndsWhatRuns(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			from, rec := basic(t, `{"shutdown_grace": "50ms"}`)
			begun, ended := make(chan struct{}), make(chan struct{})
			s := embed(t, from, mcpproxy.WithFunction("wait", mcpproxy.Function{Run: func(ctx context.Context, _ string) (string, error) {
				close(begun)
				<-ctx.Done()
				close(ended)
				return "", ctx.Err()
			}}))
			url := serve(t, s.Handler())
			c := testmcp.Connect(t, url+"/mcp", era)
			calls := []*testmcp.Pending{c.Begin("tools/call", testmcp.ToolParams("wait", `{"input":""}`)), c.Begin("tools/call", testmcp.ToolParams("up__hang", `{}`))}
			<-begun
			rec.Wait(t, testmcp.CalledTool("hang"))
			ours, theirs := mcp.NewInMemoryTransports()
			served := make(chan error, 1)
			go func() { served <- s.ServeTransport(t.Context(), ours, mcpproxy.Part{}) }()
			inside, err := client().Connect(t.Context(), theirs, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			select {
			case <-ended:
			default:
				t.Error("the function still runs")
			}
			if live := rec.Live(); len(live) != 0 {
				testmcp.Eventually(t, "the record of the child's end", func() bool { return len(rec.Live()) == 0 })
			}
			if err := <-served; err != nil {
				t.Errorf("the conversation in memory ends with %v", err)
			}
			_ = inside.Close()
			for _, call := range calls {
				call.Stream().WaitOver()
			}
			if code := get(t, url+"/mcp", ""); code != http.StatusServiceUnavailable {
				t.Errorf("after the end it answers %d", code)
			}
			if err := s.ServeTransport(t.Context(), ours, mcpproxy.Part{}); !errors.Is(err, mcpproxy.ErrClosed) {
				t.Errorf("after the end a conversation gives %v", err)
			}
		})
	}
}

func TestTwoAtATimeKnowNothingOfEachOther(t *testing.T) {
	var all []*testmcp.Client
	for i := range 2 {
		s := embed(t, mcpproxy.Text([]byte(`{}`)), mcpproxy.WithFunction(fmt.Sprint("f", i), mcpproxy.Function{Run: hello}))
		all = append(all, testmcp.Connect(t, serve(t, s.Handler())+"/mcp", testmcp.Modern))
	}
	for i, c := range all {
		if names := c.ToolNames(); !slices.Equal(names, []string{fmt.Sprint("f", i)}) {
			t.Errorf("number %d has %q", i, names)
		}
	}
}

func TestAChangedFileIsLoaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := `{"agents": {"%s": {"kind": "command", "command": "/bin/cat", "description": "d"}}}`
	write(fmt.Sprintf(agent, "before"))
	s := embed(t, mcpproxy.File(path), greeter())
	c := testmcp.Connect(t, serve(t, s.Handler())+"/mcp", testmcp.Modern)
	has := func(names ...string) func() bool {
		return func() bool {
			got := c.ToolNames()
			slices.Sort(got)
			return slices.Equal(got, names)
		}
	}
	testmcp.Eventually(t, "the tools", has("before", "greet_er"))
	write(fmt.Sprintf(agent, "after"))
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	testmcp.Eventually(t, "the tools of the new file", has("after", "greet_er"))
	write(`{"agents": {"after": 7}}`)
	if err := s.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "must be an object") {
		t.Errorf("a file with a mistake gives %v", err)
	}
	if !has("after", "greet_er")() {
		t.Error("a file that was refused has changed something")
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	for name, tc := range map[string]struct {
		from mcpproxy.Source
		want string
	}{
		"no file":   {mcpproxy.File(filepath.Join(t.TempDir(), "none.json")), "no such file"},
		"no path":   {mcpproxy.File(""), "the path is empty"},
		"no text":   {mcpproxy.Text(nil), "is empty"},
		"no value":  {mcpproxy.Value(func() {}), "unsupported type"},
		"no server": {mcpproxy.Value(map[string]any{"proxy": map[string]any{"profiles": map[string]any{"p": map[string]any{"servers": []string{"greeter"}}}}}), "there is no server"},
		"strict": {mcpproxy.Value(map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": "/no/such/program"}}, "proxy": map[string]any{"startup": "strict"}}),
			"cannot start"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := mcpproxy.New(t.Context(), tc.from); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it gives %v, not %q", err, tc.want)
			} else if name != "strict" && !errors.Is(err, mcpproxy.ErrConfiguration) {
				t.Errorf("%v is no mistake of the configuration", err)
			}
		})
	}
}

func TestAStrictStartThatIsGivenUp(t *testing.T) {
	asked, over := make(chan struct{}, 100), make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	defer mute.Close()
	defer close(over)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-asked
		cancel()
	}()
	s, err := mcpproxy.New(ctx, mcpproxy.Value(map[string]any{"mcpServers": map[string]any{"mute": map[string]any{"url": mute.URL}},
		"proxy": map[string]any{"startup": "strict"}}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("New gives %v", err)
	}
	if s != nil {
		_ = s.Close()
	}
}

// sink collects what is logged.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestTheProgramsOwnLoggerIsUsed(t *testing.T) {
	var out sink
	from := mcpproxy.Value(map[string]any{
		"agents": map[string]any{"a": map[string]any{"kind": "command", "description": "d", "command": "/bin/sh", "args": []string{"-c", "echo key ${KEY}>&2; exit 1"}, "env": map[string]string{"API_KEY": "${KEY}"}}},
	})
	lookup := func(name string) (string, bool) { return "open-sesame", name == "KEY" }
	s := embed(t, from, mcpproxy.WithLogger(slog.New(slog.NewJSONHandler(&out, nil))), mcpproxy.WithVariables(lookup))
	c := testmcp.Connect(t, serve(t, s.Handler())+"/mcp", testmcp.Legacy)
	if a := c.CallTool("a", `{"input":""}`); !a.IsError() {
		t.Errorf("it answers %s", a.Raw)
	}
	var call map[string]any
	testmcp.Eventually(t, "a record of the call", func() bool {
		for line := range strings.Lines(out.String()) {
			var r map[string]any
			if json.Unmarshal([]byte(line), &r) == nil && r["msg"] == "call" {
				call = r
			}
		}
		return call != nil
	})
	if call["upstream"] != "a" || call["logger"] != "proxy" || call["outcome"] != "tool_error" || call["level"] != "INFO" {
		t.Errorf("the record is %v", call)
	}
	if strings.Contains(out.String(), "sesame") {
		t.Error("a secret is in the log")
	}
}

func TestAConversationOverATransport(t *testing.T) {
	from, rec := basic(t, "")
	s := embed(t, from, greeter())
	if err := s.ServeTransport(t.Context(), nil, mcpproxy.Part{Profile: "none"}); err == nil || !strings.Contains(err.Error(), "profile/none") {
		t.Errorf("a part that is not there gives %v", err)
	}
	ours, theirs := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- s.ServeTransport(t.Context(), ours, mcpproxy.Part{Server: "up"}) }()
	heard := make(chan string, 10)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { heard <- r.Params.Message },
	}).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("ö\n", 300_000)
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": big}})
	if err != nil || r.Content[0].(*mcp.TextContent).Text != big {
		t.Errorf("a large text does not come back: %v", err)
	}
	p := &mcp.CallToolParams{Name: "progress", Arguments: map[string]any{"steps": 1}}
	p.SetProgressToken("p")
	if _, err := c.CallTool(t.Context(), p); err != nil {
		t.Error(err)
	}
	select {
	case <-heard:
	case <-time.After(testmcp.Patience):
		t.Error("no progress")
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: "hang"})
	}()
	rec.Wait(t, testmcp.CalledTool("hang"))
	cancel()
	<-gone
	rec.Wait(t, testmcp.Received("notifications/cancelled"))
	_ = c.Close()
	if err := <-served; err != nil {
		t.Errorf("the end of the client gives %v", err)
	}
}

func TestAConversationEndsWithItsContext(t *testing.T) {
	s := embed(t, mcpproxy.Text([]byte(`{}`)), greeter())
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	served := make(chan error, 1)
	go func() {
		served <- s.ServeTransport(ctx, &mcp.IOTransport{Reader: r, Writer: nopCloser{io.Discard}}, mcpproxy.Part{})
	}()
	cancel()
	select {
	case err := <-served:
		if err != nil {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(testmcp.Patience):
		t.Fatal("it goes on")
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
