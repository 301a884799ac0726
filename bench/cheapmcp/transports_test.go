package cheapmcp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An independent client must get along with the server in both eras, over both
// transports.
func TestIndependentClient(t *testing.T) {
	transports := map[string]func(*testing.T) mcp.Transport{
		"http":  httpTransport,
		"stdio": stdioTransport,
	}
	for kind, start := range transports {
		for _, version := range []string{LegacyVersion, ModernVersion} {
			t.Run(kind+" "+version, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				session, err := client.Connect(ctx, start(t), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				if got := session.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("revision %s", got)
				}
				useTools(ctx, t, session)
			})
		}
	}
}

func useTools(ctx context.Context, t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	list, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 20 {
		t.Errorf("%d tools instead of 20", len(list.Tools))
	}
	for _, size := range TextSizes() {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: TextTool(size)})
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := result.Content[0].(*mcp.TextContent); !ok || len(text.Text) != size {
			t.Errorf("%s brought %T", TextTool(size), result.Content[0])
		}
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "other"}); err == nil {
		t.Error("a tool that is not there was called")
	}
}

func httpTransport(t *testing.T) mcp.Transport {
	server := httptest.NewServer(Handler(New(20)))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client}
}

func stdioTransport(t *testing.T) mcp.Transport {
	requests, toServer := io.Pipe()
	fromServer, answers := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- ServeStdio(New(20), requests, answers) }()
	t.Cleanup(func() {
		toServer.Close()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return &mcp.IOTransport{Reader: fromServer, Writer: toServer}
}

func TestHTTPRules(t *testing.T) {
	modern := map[string]string{"Mcp-Protocol-Version": ModernVersion, "Mcp-Method": "tools/list"}
	modernList := `{"id":1,"method":"tools/list","params":{` + modernMeta + `}}`
	tests := []struct {
		name, method, body string
		headers            map[string]string
		status             int
	}{
		{"initialize", "POST", `{"id":1,"method":"initialize"}`, nil, 200},
		{"no session", "POST", `{"id":1,"method":"tools/list"}`, nil, 400},
		{"foreign session", "POST", `{"id":1,"method":"tools/list"}`, map[string]string{"Mcp-Session-Id": "x"}, 404},
		{"modern", "POST", modernList, modern, 200},
		{"modern without headers", "POST", modernList, nil, 400},
		{"modern with another method in the header", "POST", `{"id":1,"method":"server/discover","params":{` + modernMeta + `}}`, modern, 400},
		{"modern without such a method", "POST", `{"id":1,"method":"ping","params":{` + modernMeta + `}}`, map[string]string{"Mcp-Protocol-Version": ModernVersion, "Mcp-Method": "ping"}, 404},
		{"no JSON", "POST", `hello`, nil, 400},
		{"stream", "GET", ``, nil, 405},
		{"end of a foreign session", "DELETE", ``, map[string]string{"Mcp-Session-Id": "x"}, 405},
		{"too long", "POST", strings.Repeat(" ", maxBody+1), nil, 413},
	}
	handler := Handler(New(0))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := send(handler, test.method, test.body, test.headers).Code; got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
		})
	}
}

func send(handler http.Handler, method, body string, headers map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestHTTPSession(t *testing.T) {
	handler := Handler(New(0))
	begin := func() map[string]string {
		id := send(handler, "POST", `{"id":1,"method":"initialize"}`, nil).Header().Get("Mcp-Session-Id")
		return map[string]string{"Mcp-Session-Id": id}
	}
	one, two := begin(), begin()
	if one["Mcp-Session-Id"] == two["Mcp-Session-Id"] {
		t.Error("two sessions have the same id")
	}
	steps := []struct {
		method, body string
		status       int
	}{
		{"POST", `{"method":"notifications/initialized"}`, 202},
		{"POST", `{"id":2,"method":"tools/call","params":{"name":"text_100"}}`, 200},
		{"DELETE", ``, 204},
	}
	for _, step := range steps {
		if got := send(handler, step.method, step.body, one).Code; got != step.status {
			t.Errorf("%s %s: status %d, want %d", step.method, step.body, got, step.status)
		}
	}
}

// countedWriter counts the writes that reach it.
type countedWriter struct {
	bytes.Buffer
	writes int
}

func (w *countedWriter) Write(p []byte) (int, error) {
	w.writes++
	return w.Buffer.Write(p)
}

func TestStdioBurst(t *testing.T) {
	const n = 50
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, "{\"id\":%d,\"method\":\"ping\"}\n", i)
	}
	var out countedWriter
	if err := ServeStdio(New(0), strings.NewReader(in.String()), &out); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&out)
	for i := range n {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i)
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("line %d is %q, want %q", i, lines.Text(), want)
		}
	}
	if lines.Scan() {
		t.Errorf("one line too many: %q", lines.Text())
	}
	if out.writes != 1 {
		t.Errorf("%d writes for one burst", out.writes)
	}
}

func TestStdioEndsOnALineTooLong(t *testing.T) {
	if err := ServeStdio(New(0), strings.NewReader(strings.Repeat(" ", maxBody+1)), io.Discard); err == nil {
		t.Error("no error")
	}
}
