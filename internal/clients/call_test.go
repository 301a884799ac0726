package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// answering is a proxy that answers every call so, and keeps the last request.
func answering(t *testing.T, status int, kind, body string) (url string, last func() (*http.Request, string)) {
	t.Helper()
	var req *http.Request
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		req, got = r, string(b)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (*http.Request, string) { return req, got }
}

const (
	jsonType = "application/json"
	sseType  = "text/event-stream; charset=utf-8"
)

func TestWhatACallShows(t *testing.T) {
	result := func(s string) string { return `{"jsonrpc":"2.0","id":1,"result":` + s + `}` }
	for _, c := range []struct {
		name         string
		status       int
		kind, body   string
		want, errHas string
	}{
		{"one text", 200, jsonType, result(`{"content":[{"type":"text","text":"a\nb"}]}`), "a\nb", ""},
		{"several blocks", 200, jsonType, result(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","x":1.10}]}`), `[{"type":"text","text":"a"},{"type":"image","data":"AA==","x":1.10}]`, ""},
		{"another block", 200, jsonType, result(`{"content":[{"type":"image","data":"AA=="}]}`), `[{"type":"image","data":"AA=="}]`, ""},
		{"structured", 200, jsonType, result(`{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":12345678901234567890,"f":1.10}}`), `{"n":12345678901234567890,"f":1.10}`, ""},
		{"an error of the tool", 200, jsonType, result(`{"content":[{"type":"text","text":"no disk"}],"isError":true}`), "", "the tool failed: no disk"},
		{"an error", 200, jsonType, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool: x"}}`, "", "unknown tool: x"},
		{"an error by status", 400, jsonType, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`, "", "bad"},
		{"a stream", 200, sseType, ": hi\n\nid: 0\ndata:\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: " + result(`{"content":[{"type":"text","text":"a"}]}`) + "\n\n", "a", ""},
		{"a stream that ends", 200, sseType, ": hi\n\n", "", "without an answer"},
		{"a page", 502, "text/html", "<html>", "", "502"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := answering(t, c.status, c.kind, c.body)
			got, err := (&Caller{URL: url, Version: "1"}).Call(t.Context(), "x", []byte(`{}`))
			switch {
			case c.errHas == "" && (err != nil || string(got) != c.want):
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			case c.errHas != "" && (err == nil || !strings.Contains(err.Error(), c.errHas)):
				t.Errorf("got %s, %v; want %s", got, err, c.errHas)
			}
		})
	}
}

func TestWhatACallSends(t *testing.T) {
	url, last := answering(t, 200, jsonType, `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	const args = `{"n":12345678901234567890,"f":1.10,"s":"\u00e9"}`
	if _, err := (&Caller{URL: url, Token: "secret", Version: `1"`}).Call(t.Context(), "größe", []byte(args)); err != nil {
		t.Fatal(err)
	}
	r, body := last()
	if !strings.Contains(body, `"arguments":`+args) || !strings.Contains(body, `"name":"größe"`) {
		t.Errorf("sent %s", body)
	}
	if _, err := wire.Parse([]byte(body), wire.Downstream, wire.Limits{}); err != nil {
		t.Errorf("sent %s: %v", body, err)
	}
	for name, want := range map[string]string{"Authorization": "Bearer secret", "Mcp-Method": "tools/call", "Mcp-Name": wire.EncodeHeader("größe"),
		"Mcp-Protocol-Version": wire.LatestModern, "Content-Type": jsonType} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestArgumentsThatAreNone(t *testing.T) {
	for _, args := range []string{``, `[]`, `"x"`, `{`, `{} {}`, `null`} {
		if _, err := (&Caller{URL: "http://127.0.0.1:0"}).Call(t.Context(), "x", []byte(args)); err == nil || !strings.Contains(err.Error(), "JSON object") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// An error of the network does not tell the URL, which may hold a credential.
func TestACallThatCannotBeMade(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := (&Caller{URL: s.URL + "/mcp?key=hidden"}).Call(t.Context(), "x", []byte(`{}`))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("the error is %v", err)
	}
}

func TestHealth(t *testing.T) {
	for status, well := range map[int]bool{200: true, 503: false} {
		url, last := answering(t, status, "text/plain", "")
		for _, base := range []string{url, url + "/", url + "/mcp", url + "/mcp/"} {
			if err := Health(t.Context(), base); (err == nil) != well {
				t.Errorf("%d at %s: %v", status, base, err)
			}
			if r, _ := last(); r.URL.Path != "/healthz" {
				t.Errorf("%s: asked for %s", base, r.URL.Path)
			}
		}
	}
}
