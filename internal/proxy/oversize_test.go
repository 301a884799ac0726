package proxy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const resultBound = 2 << 10

// answering is a server whose tool gives this result.
func answering(era wire.Era, result string) *server {
	if era == wire.Modern {
		result = strings.Replace(result, "{", `{"resultType":"complete",`, 1)
	}
	s := &server{id: "up", era: era, on: func(f *wire.Frame, _ io.Writer) (string, bool) {
		return `"result":` + result, f.Method == "tools/call"
	}}
	return s.set(Tool, tool("t"), `{"name":"schema","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`, tool("wide"))
}

func bounded(oversize config.Oversize) func(*config.Server) {
	return func(c *config.Server) {
		c.MaxResultSize, c.Oversize = resultBound, oversize
		c.Tools = map[string]config.ToolOverride{"wide": {MaxResultSize: 1 << 20}}
	}
}

var someKept = Options{KeptResults: config.KeptResults{MaxBytes: 1 << 20, MaxItems: 10, MaxAge: time.Minute}}

func textResult(text, more string) string {
	b := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return string(append(b, `}]`+more+`}`...))
}

var oddText = strings.Repeat("ä€𝄞\"\\\n\u2028 plain ", 400)

func eachEra(t *testing.T, f func(t *testing.T, up wire.Era, c *Caller)) {
	for _, up := range []wire.Era{wire.Legacy, wire.Modern} {
		for _, c := range []*Caller{legacyCaller(), modernCaller()} {
			t.Run(fmt.Sprintf("%s server, %s client", up, c.Era), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { f(t, up, c) })
			})
		}
	}
}

func TestALongResultIsRefused(t *testing.T) {
	eachEra(t, func(t *testing.T, up wire.Era, c *Caller) {
		st := newStage(t, someKept, bounded(config.OversizeRefuse), answering(up, textResult(oddText, `,"structuredContent":{"a":1},"_meta":{"x":1}`)))
		defer st.stop()
		got := st.callTool(c, "up__t")
		if !got.IsError || len(got.Content) != 1 || !strings.HasPrefix(got.Content[0].Text, "up::t: the result has ") || !strings.Contains(got.Content[0].Text, "2048") {
			t.Errorf("the answer is %s", got.raw)
		}
		if got.StructuredContent != nil || string(got.Meta["x"]) != "1" || (got.ResultType == "complete") != (c.Era == wire.Modern) {
			t.Errorf("the answer is %s", got.raw)
		}
		if n := metricOf(t, st.reg, "mcp_proxy_limit_exceeded_total", "limit", count.LimitResult); n != 1 {
			t.Errorf("%v results are counted", n)
		}
		if n := metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "up", "method", "tools/call", "outcome", "tool_error"); n != 1 {
			t.Errorf("%v tool errors are counted", n)
		}
		if wide := st.callTool(c, "up__wide"); wide.IsError || wide.Content[0].Text != oddText {
			t.Error("the tool's own bound does not hold")
		}
	})
}

func TestALongTextIsKeptAndReadInPages(t *testing.T) {
	eachEra(t, func(t *testing.T, up wire.Era, c *Caller) {
		st := newStage(t, someKept, bounded(config.OversizeResource), answering(up, textResult(oddText, "")))
		defer st.stop()
		c.Principal = "alice"
		got := st.callTool(c, "up__t")
		if got.IsError || len(got.Content) != 2 || len(got.raw) > resultBound+100 {
			t.Fatalf("the answer has %d bytes: %s", len(got.raw), got.raw)
		}
		head, note, _ := strings.Cut(got.Content[0].Text, "\n\n[up::t: ")
		link := got.Content[1]
		if !strings.HasPrefix(oddText, head) || len(head) < 200 || !strings.Contains(note, link.URI) || link.Type != "resource_link" || link.Size != len(oddText) || link.MimeType != "text/plain" {
			t.Errorf("the answer is %s", got.raw)
		}
		text, mime, n := st.pages(c, link.URI)
		if text != oddText || mime != "text/plain" || n < 5 {
			t.Errorf("%d pages of %s give %d bytes of %d", n, mime, len(text), len(oddText))
		}
		if n := metricOf(t, st.reg, "mcp_proxy_requests_total", "upstream", "up", "method", "tools/call", "outcome", "ok"); n != 1 {
			t.Errorf("%v good calls are counted", n)
		}
		st.wantNobodyElse(c, link.URI)
	})
}

func TestWhatIsKeptOfResultsOfOtherKinds(t *testing.T) {
	blob := make([]byte, 5000)
	for i := range blob {
		blob[i] = byte(i * 7)
	}
	coded := base64.StdEncoding.EncodeToString(blob)
	long := strings.Repeat("x", 5000)
	two := `{"content":[{"type":"text","text":"` + long + `"},{"type":"text","text":"end"}]}`
	mixed := `{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"` + coded + `"}]}`
	structured := textResult("short", `,"structuredContent":{"rows":"`+long+`"}`)
	for name, tt := range map[string]struct {
		tool, result string
		body, mime   string
		failed       bool
	}{
		"texts":              {"t", two, long + "\nend", "text/plain", false},
		"an error":           {"t", textResult(long, `,"isError":true`), long, "text/plain", true},
		"an image":           {"t", `{"content":[{"type":"image","mimeType":"image/png","data":"` + coded + `"}]}`, string(blob), "image/png", false},
		"an embedded blob":   {"t", `{"content":[{"type":"resource","resource":{"uri":"x:y","blob":"` + coded + `"}}]}`, string(blob), "application/octet-stream", false},
		"an embedded text":   {"t", `{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"text/html","text":"` + long + `"}}]}`, long, "text/html", false},
		"no base64":          {"t", `{"content":[{"type":"audio","data":"?` + long + `"}]}`, `{"content":[{"type":"audio","data":"?` + long + `"}]}`, "application/json", false},
		"several kinds":      {"t", mixed, mixed, "application/json", false},
		"structured content": {"t", structured, structured, "application/json", false},
		"the same twice":     {"t", textResult(long, `,"structuredContent":{"rows":1}`), long, "text/plain", false},
		"an output schema":   {"schema", textResult(long, `,"structuredContent":{"rows":1}`), long, "text/plain", true},
		"unknown content":    {"t", `{"content":[{"type":"new","is":"` + long + `"}]}`, `{"content":[{"type":"new","is":"` + long + `"}]}`, "application/json", false},
		"no content":         {"t", `{"content":[],"more":"` + long + `"}`, `{"content":[],"more":"` + long + `"}`, "application/json", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, someKept, bounded(config.OversizeResource), answering(wire.Legacy, tt.result))
				defer st.stop()
				got := st.callTool(legacyCaller(), "up__"+tt.tool)
				if len(got.Content) != 2 || got.IsError != tt.failed || got.StructuredContent != nil || len(got.raw) > resultBound+100 {
					t.Fatalf("the answer is %s", got.raw)
				}
				body, mime, _ := st.pages(legacyCaller(), got.Content[1].URI)
				if body != tt.body || mime != tt.mime {
					t.Errorf("kept is %s of %d bytes: %.100q", mime, len(body), body)
				}
			})
		})
	}
}

func TestWhatIsWithinItsBoundIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fits := textResult(strings.Repeat("x", resultBound-len(textResult("", ""))), "")
		st := newStage(t, someKept, bounded(config.OversizeResource), answering(wire.Legacy, fits))
		defer st.stop()
		if len(fits) != resultBound {
			t.Fatal(len(fits))
		}
		if got := st.callTool(legacyCaller(), "up__t"); got.raw != fits {
			t.Errorf("the answer is %s", got.raw)
		}
	})
}

func TestAnOldClientGetsNoLinkItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, someKept, bounded(config.OversizeResource), answering(wire.Legacy, textResult(oddText, "")))
		defer st.stop()
		c := legacyCaller()
		c.Version = wire.Rev20250326
		got := st.callTool(c, "up__t")
		if len(got.Content) != 1 || got.Content[0].Type != "text" || !strings.Contains(got.Content[0].Text, stashScheme) {
			t.Errorf("the answer is %s", got.raw)
		}
	})
}

func TestResultsOfTasksAreBounded(t *testing.T) {
	long := textResult(oddText, "")
	for name, tt := range map[string]struct {
		era     wire.Era
		answers map[string][]string
	}{
		"legacy": {wire.Legacy, map[string][]string{
			"tools/call": {`"result":{"task":{"taskId":"1","status":"completed"}}`}, "tasks/result": {`"result":` + long}}},
		"modern": {wire.Modern, map[string][]string{
			"tools/call": {`"result":{"resultType":"task","taskId":"1","status":"working"}`}, "tasks/get": {`"result":{"resultType":"complete","taskId":"1","status":"completed","result":` + long + `}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				settings := func(c *config.Server) { withTaskSettings(c); bounded(config.OversizeResource)(c) }
				st := newStage(t, someKept, settings, taskServer(tt.era, tt.answers))
				defer st.stop()
				c := legacyCaller()
				got := st.callTool(c, "up__t")
				if len(got.Content) != 2 || len(got.raw) > resultBound+100 {
					t.Fatalf("a task that is followed gives %s", got.raw)
				}
				if text, _, _ := st.pages(c, got.Content[1].URI); text != oddText {
					t.Errorf("kept are %d bytes of %d", len(text), len(oddText))
				}
			})
		})
	}
}

func TestResultsOfRelayedTasksAreBounded(t *testing.T) {
	long := textResult(oddText, `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}`)
	settings := func(c *config.Server) { withTaskSettings(c); bounded(config.OversizeResource)(c) }
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, someKept, settings, taskServer(wire.Legacy, map[string][]string{
			"tools/call": {`"result":{"task":{"taskId":"1","status":"completed"}}`}, "tasks/result": {`"result":` + long}}))
		defer st.stop()
		c := legacyCaller()
		id := sealed.FindString(st.text(c, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up__t","task":{}}}`))
		got := st.read(st.request(c, nil, `{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":"`+id+`"}}`))
		if len(got.Content) != 2 || !strings.Contains(string(got.Meta["io.modelcontextprotocol/related-task"]), id) {
			t.Fatalf("the answer is %s", got.raw)
		}
		if text, _, _ := st.pages(c, got.Content[1].URI); text != oddText {
			t.Errorf("kept are %d bytes of %d", len(text), len(oddText))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, someKept, settings, taskServer(wire.Modern, map[string][]string{
			"tools/call": {`"result":{"resultType":"task","taskId":"1","status":"working"}`},
			"tasks/get":  {`"result":{"resultType":"complete","taskId":"1","status":"completed","result":` + long + `}`}}))
		defer st.stop()
		c := modernCaller()
		c.Caps = CapTasks
		id := sealed.FindString(st.text(c, modernCall(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, "")))
		raw := st.text(c, strings.Replace(modernCall(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, ""), `"tools/call","params":{`, `"tasks/get","params":{"taskId":"`+id+`",`, 1))
		if !strings.Contains(raw, `"status":"completed"`) || !strings.Contains(raw, `"resource_link"`) || len(raw) > resultBound+600 {
			t.Fatalf("the task is %s", raw)
		}
	})
}

func TestKeptResultsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := config.KeptResults{MaxBytes: 1000, MaxItems: 4, MaxAge: time.Minute}
		s := newStash(limit, nil)
		defer s.stop()
		put := func(principal string, n int) *stashed {
			e := &stashed{principal: principal, body: strings.Repeat("x", n)}
			if !s.put(e) {
				t.Fatalf("%d bytes are not kept", n)
			}
			return e
		}
		held := func() string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Sprint(s.order.Len(), s.bytes, len(s.held), s.sweeps != nil)
		}
		has := func(e *stashed) bool { return s.get(e.token, &Caller{Principal: e.principal}) != nil }
		if s.put(&stashed{body: strings.Repeat("x", 1001)}) {
			t.Error("more is kept than there is room for")
		}
		small := put("quiet", 100)
		first, second := put("loud", 400), put("loud", 400)
		third := put("loud", 600)
		if !has(small) || has(first) || has(second) || !has(third) {
			t.Error("others go than the oldest of whoever holds most")
		}
		put("a", 1)
		put("b", 1)
		put("c", 1)
		if has(third) || !has(small) || held() != "4 103 4 true" {
			t.Errorf("kept are %s", held())
		}
		pass(59 * time.Second)
		late := put("late", 10)
		pass(2 * time.Second)
		synctest.Wait()
		if has(small) || !has(late) || held() != "1 10 1 true" {
			t.Errorf("after a minute kept are %s", held())
		}
		pass(time.Minute)
		synctest.Wait()
		if held() != "0 0 0 false" {
			t.Errorf("what is too old stays until somebody asks: %s", held())
		}
		put("a", 900)
		s.bound(config.KeptResults{MaxBytes: 100, MaxItems: 4, MaxAge: time.Minute})
		if held() != "0 0 0 true" {
			t.Error("a lower bound changes nothing")
		}
		s.bound(config.KeptResults{MaxBytes: 100, MaxAge: time.Minute})
		if s.put(&stashed{body: "x"}) {
			t.Error("something is kept where nothing may be")
		}
	})
}

func TestWithoutRoomALongResultIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{KeptResults: config.KeptResults{MaxBytes: 1024, MaxItems: 10, MaxAge: time.Minute}}, bounded(config.OversizeResource), answering(wire.Legacy, textResult(oddText, "")))
		defer st.stop()
		if got := st.callTool(legacyCaller(), "up__t"); !got.IsError || len(got.Content) != 1 {
			t.Errorf("the answer is %s", got.raw)
		}
		if n := metricOf(t, st.reg, "mcp_proxy_limit_exceeded_total", "limit", count.LimitKept); n != 1 {
			t.Errorf("%v are counted", n)
		}
	})
}

func TestAServerWithoutResourcesOffersThoseThatAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(wire.Legacy, textResult(oddText, ""))
		s.caps = `{"tools":{}}`
		st := newStage(t, someKept, bounded(config.OversizeResource), s)
		defer st.stop()
		c := legacyCaller()
		c.View = ServerView("up")
		got := st.callTool(c, "t")
		if caps := st.p.Capabilities(c.View); !json.Valid([]byte(caps)) || !strings.Contains(caps, `"resources":{}`) {
			t.Errorf("the capabilities are %s", caps)
		}
		if text, _, _ := st.pages(c, got.Content[1].URI); text != oddText {
			t.Errorf("kept are %d bytes", len(text))
		}
		if slices.ContainsFunc(s.received("resources/read"), func(raw string) bool { return strings.Contains(raw, stashScheme) }) {
			t.Error("the server is asked for what the proxy keeps")
		}
	})
}

func FuzzFitting(f *testing.F) {
	f.Add("ä€𝄞\"\\\n\u2028\x01", 7)
	f.Fuzz(func(t *testing.T, s string, room int) {
		s = strings.ToValidUTF8(s, "")
		n := fitting(s, room)
		if s == "" {
			return
		}
		if n < 1 || n > len(s) || !utf8.ValidString(s[:n]) {
			t.Fatalf("%q is cut at %d for %d", s, n, room)
		}
		if size := len(wire.AppendString(nil, s[:n])) - 2; size > room && utf8.RuneCountInString(s[:n]) > 1 {
			t.Fatalf("%q has %d bytes for %d", s[:n], size, room)
		}
	})
}
