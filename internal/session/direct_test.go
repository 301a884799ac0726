package session

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestAnswersWithoutTheProtocol(t *testing.T) {
	for _, c := range []struct {
		name    string
		frame   string
		outcome proxy.Outcome
		unknown bool
		status  int
		retry   string
		want    string
	}{
		{"a busy server", `"error":{"code":-32603,"message":"a::t: full","data":{"reason":"overloaded","retry_after_ms":1500}}`, proxy.Overloaded, false, 503, "2",
			`{"error":{"reason":"overloaded","message":"a::t: full","code":-32603,"data":{"reason":"overloaded","retry_after_ms":1500}}}`},
		{"a server that is not there", `"error":{"code":-32603,"message":"gone"}`, proxy.Unavailable, false, 503, "", `{"error":{"reason":"unavailable","message":"gone","code":-32603}}`},
		{"a call in doubt", `"error":{"code":-32603,"message":"?"}`, proxy.Uncertain, false, 502, "", `{"error":{"reason":"uncertain","message":"?","code":-32603}}`},
		{"a lost connection", `"error":{"code":-32603,"message":"?"}`, proxy.TransportError, false, 502, "", `{"error":{"reason":"transport_error","message":"?","code":-32603}}`},
		{"no time left", `"error":{"code":-32603,"message":"?"}`, proxy.Timeout, false, 504, "", `{"error":{"reason":"timeout","message":"?","code":-32603}}`},
		{"what is not there", `"error":{"code":-32602,"message":"unknown tool: t"}`, proxy.Invalid, true, 404, "", `{"error":{"reason":"invalid","message":"unknown tool: t","code":-32602}}`},
		{"bad arguments", `"error":{"code":-32602,"message":"no"}`, proxy.Invalid, false, 400, "", `{"error":{"reason":"invalid","message":"no","code":-32602}}`},
		{"a question", `"result":{"resultType":"input_required","inputRequests":{}}`, proxy.OK, false, 422, "",
			`{"error":{"reason":"tool_error","message":"the tool answers with input_required, which only an MCP client can go on with"}}`},
		{"a failure in blocks", `"result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}`, proxy.ToolError, false, 422, "",
			`{"error":{"reason":"tool_error","message":"the tool failed","result":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`},
	} {
		a := proxy.Whole([]byte(`{"jsonrpc":"2.0","id":1,` + c.frame + `}`))
		a.Outcome, a.Unknown = c.outcome, c.unknown
		if f, err := wire.Parse(a.Bytes(), wire.Upstream, wire.Limits{}); err == nil && f.Kind == wire.KindError {
			a.Code = wire.CodeInternal
			if strings.Contains(c.frame, "-32602") {
				a.Code = wire.CodeInvalidParams
			}
		}
		_, fail := directAnswer(&a)
		if fail == nil {
			t.Errorf("%s: no fault", c.name)
			continue
		}
		w := httptest.NewRecorder()
		fail.write(w)
		if got := strings.TrimSpace(w.Body.String()); w.Code != c.status || got != c.want || w.Header().Get("Retry-After") != c.retry {
			t.Errorf("%s: HTTP %d %s, Retry-After %q", c.name, w.Code, got, w.Header().Get("Retry-After"))
		}
	}
}

// FuzzDirectFrame: whatever the body, what is made of it calls the tool that the path names, with the body as arguments.
func FuzzDirectFrame(f *testing.F) {
	for _, s := range []string{`{}`, ``, ` {"a":1}`, `{},"name":"x"`, `{"a":"}"}`, "{\"a\":\n1}", `[]`, `{"a":1}}`} {
		f.Add(s, "tool")
	}
	m := &Manager{}
	f.Fuzz(func(t *testing.T, body, tool string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		frame, fail := m.directFrame(r, tool)
		if fail != nil {
			return
		}
		name, _ := wire.DecodeString(frame.Body.Get(frame.Raw, "name").Of(frame.Raw))
		args := string(frame.Body.Get(frame.Raw, "arguments").Of(frame.Raw))
		if name != string([]rune(tool)) || frame.Method != "tools/call" || strings.ContainsAny(string(frame.Raw), "\n\r") {
			t.Errorf("%q of %q becomes %s", body, tool, frame.Raw)
		}
		if want := strings.TrimSpace(body); len(args) < len(want) && want != "" {
			t.Errorf("%q becomes %s", body, args)
		}
	})
}
