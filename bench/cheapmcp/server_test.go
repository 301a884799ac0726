package cheapmcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func answerTo(t *testing.T, s *Server, message string) string {
	t.Helper()
	_, rep := s.answer([]byte(message))
	if !rep.answers() {
		return ""
	}
	return string(rep.render())
}

func TestAnswersBothEras(t *testing.T) {
	s := New(0)
	tests := []struct{ name, message, contains, lacks string }{
		{"initialize", `{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, `"protocolVersion":"2025-06-18"`, "resultType"},
		{"initialize with an unknown revision", `{"id":1,"method":"initialize","params":{"protocolVersion":"1999-01-01"}}`, `"protocolVersion":"2025-11-25"`, "error"},
		{"ping", `{"id":1,"method":"ping"}`, `"result":{}`, "resultType"},
		{"legacy list", `{"id":1,"method":"tools/list"}`, `"name":"text_100"`, "resultType"},
		{"legacy call", `{"id":1,"method":"tools/call","params":{"name":"text_100"}}`, `"type":"text"`, "resultType"},
		{"legacy discover", `{"id":1,"method":"server/discover"}`, `"code":-32601`, "result\""},
		{"discover", `{"id":1,"method":"server/discover","params":{` + modernMeta + `}}`, `"supportedVersions":["2026-07-28",`, "error"},
		{"modern list", `{"id":1,"method":"tools/list","params":{` + modernMeta + `}}`, `"cacheScope":"public"`, "error"},
		{"modern call", `{"id":1,"method":"tools/call","params":{"name":"text_100",` + modernMeta + `}}`, `"resultType":"complete"`, "error"},
		{"modern initialize", `{"id":1,"method":"initialize","params":{` + modernMeta + `}}`, `"code":-32601`, "result\""},
		{"later revision", `{"id":1,"method":"tools/list","params":{` + strings.Replace(modernMeta, "2026", "2036", 1) + `}}`, `"requested":"2036-07-28"`, "result\""},
		{"unknown tool", `{"id":1,"method":"tools/call","params":{"name":"other"}}`, `"code":-32602`, "result\""},
		{"batch", `[{"id":1,"method":"ping"}]`, `"code":-32600`, "result\""},
		{"no JSON", `hello`, `"code":-32700`, "result\""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := answerTo(t, s, test.message)
			if !json.Valid([]byte(got)) {
				t.Fatalf("not JSON: %.300s", got)
			}
			if !strings.Contains(got, test.contains) || strings.Contains(got, test.lacks) {
				t.Errorf("got %.300s", got)
			}
		})
	}
}

func TestNotificationsHaveNoAnswer(t *testing.T) {
	for _, message := range []string{`{"method":"notifications/initialized"}`, `{"id":1,"result":{}}`} {
		if got := answerTo(t, New(0), message); got != "" {
			t.Errorf("%s was answered with %s", message, got)
		}
	}
}

func TestIDsComeBackAsSent(t *testing.T) {
	s := New(0)
	for _, id := range []string{`1`, `-0`, `1.50`, `12345678901234567890`, `"1"`, `"\u0041\"}"`, `"日"`} {
		for _, method := range []string{"ping", "no/such"} {
			got := answerTo(t, s, fmt.Sprintf(`{"id":%s,"method":%q}`, id, method))
			var frame struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(got), &frame); err != nil || string(frame.ID) != id {
				t.Errorf("id %s came back as %s (%v)", id, frame.ID, err)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	s := New(1000)
	for _, size := range TextSizes() {
		for _, params := range []string{"", "," + modernMeta} {
			got := answerTo(t, s, fmt.Sprintf(`{"id":1,"method":"tools/call","params":{"name":%q%s}}`, TextTool(size), params))
			var frame struct {
				Result struct{ Content []struct{ Text string } }
			}
			if err := json.Unmarshal([]byte(got), &frame); err != nil {
				t.Fatal(err)
			}
			if n := len(frame.Result.Content[0].Text); n != size {
				t.Errorf("%d bytes instead of %d", n, size)
			}
		}
	}
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(answerTo(t, s, `{"id":1,"method":"tools/list"}`)), &list); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range list.Result.Tools {
		names[tool.Name] = true
	}
	if len(list.Result.Tools) != 1000 || len(names) != 1000 {
		t.Errorf("%d tools, %d names", len(list.Result.Tools), len(names))
	}
}

func TestReplySizeIsExact(t *testing.T) {
	for _, id := range []string{`1`, `"abc"`} {
		_, rep := New(0).answer(fmt.Appendf(nil, `{"id":%s,"method":"tools/list"}`, id))
		if got := len(rep.render()); got != rep.size() {
			t.Errorf("size says %d, the message has %d bytes", rep.size(), got)
		}
	}
}
