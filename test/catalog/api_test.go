package catalog

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = behaviour("desk", func() *testmcp.Server {
	result := func(raw string) testmcp.Handler { return func(c *testmcp.Call) { c.Result(raw) } }
	s := &testmcp.Server{Tools: []testmcp.Tool{
		testmcp.SimpleTool("text", func(c *testmcp.Call) { c.Text("good\n\"day\"") }),
		testmcp.SimpleTool("structured", result(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":9007199254740993}}`)),
		testmcp.SimpleTool("blocks", result(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}]}`)),
		testmcp.SimpleTool("fails", func(c *testmcp.Call) { c.ToolError("no such book") }),
		testmcp.SimpleTool("refuses", func(c *testmcp.Call) { c.Error(-32000, "refused as asked", `{"why":"asked"}`) }),
		testmcp.SimpleTool("rejects", func(c *testmcp.Call) { c.Error(-32602, "bad arguments", "") }),
		testmcp.SimpleTool("echo", func(c *testmcp.Call) { c.Text(string(c.Args())) }),
		testmcp.SimpleTool("hang", (*testmcp.Call).Hang),
		testmcp.SimpleTool("hidden", func(c *testmcp.Call) { c.Text("hidden") }),
		testmcp.SimpleTool("asks", func(c *testmcp.Call) {
			if _, ok := c.Input("q", "elicitation/create", `{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}`); ok {
				c.Text("answered")
			}
		}),
	}}
	return s
})

// post calls a tool without the protocol.
func post(t *testing.T, url, body string, header ...string) (status int, text string, head http.Header) {
	t.Helper()
	return fetch(t, http.MethodPost, url, body, header...)
}

func get(t *testing.T, url string) (status int, text string, head http.Header) {
	t.Helper()
	return fetch(t, http.MethodGet, url, "")
}

func fetch(t *testing.T, method, url, body string, header ...string) (status int, text string, head http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSuffix(string(b), "\n"), resp.Header
}

func TestToolsAreCalledWithoutTheProtocol(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	for _, era := range []string{"legacy", "modern"} {
		servers[era] = testmcp.NewRecorder(t).Entry("desk", []string{era}, `"tool_policy":{"deny":["hidden"]}`, `"tools":{"hang":{"call_timeout":"300ms"}}`)
	}
	servers["broken"] = `{"command":"/nowhere/at/all"}`
	p := start(t, testmcp.Config(`{"profiles":{"few":{"servers":["legacy"],"tool_policy":{"expose":["text"]},"naming":{"mode":"none"}}}}`, servers))
	for _, up := range []string{"legacy", "modern"} {
		for _, tt := range []struct {
			tool, body string
			status     int
			want       string // the whole body, or with a … at its end the beginning
		}{
			{"text", `{}`, 200, `"good\n\"day\""`},
			{"text", ``, 200, `"good\n\"day\""`},
			{"structured", `{}`, 200, `{"n":9007199254740993}`},
			{"blocks", `{}`, 200, `[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}]`},
			{"echo", ` {"n":9007199254740993, "x":[1.10]} `, 200, `"{\"n\":9007199254740993, \"x\":[1.10]}"`},
			{"echo", "{\"a\":\n1}", 200, `"{\"a\": 1}"`},
			{"fails", `{}`, 422, `{"error":{"reason":"tool_error","message":"no such book","result":"no such book"}}`},
			{"refuses", `{}`, 502, `{"error":{"reason":"rpc_error","message":"refused as asked","code":-32000,"data":{"why":"asked"}}}`},
			{"rejects", `{}`, 400, `{"error":{"reason":"rpc_error","message":"bad arguments","code":-32602}}`},
			{"hang", `{}`, 504, `{"error":{"reason":"timeout","message":"` + up + `::hang: …`},
			{"hidden", `{}`, 404, `{"error":{"reason":"invalid","message":"unknown tool: ` + up + `__hidden","code":-32602}}`},
			{"nothing", `{}`, 404, `{"error":{"reason":"invalid","message":"unknown tool: ` + up + `__nothing","code":-32602}}`},
			{"echo", `[1]`, 400, `{"error":{"reason":"invalid","message":"the body must be…`},
			{"echo", `{"a":1}, "name":"x"`, 400, `{"error":{"reason":"invalid","message":"the body must be…`},
			{"echo", `{"a":1,"a":2`, 400, `{"error":{"reason":"invalid","message":"the body must be…`},
		} {
			status, got, head := post(t, p.Base+"/api/v1/tools/"+up+"__"+tt.tool+"/call", tt.body)
			begin, open := strings.CutSuffix(tt.want, "…")
			if status != tt.status || got != tt.want && !(open && strings.HasPrefix(got, begin)) || head.Get("Content-Type") != "application/json" {
				t.Errorf("%s of %s: HTTP %d %s, want %d %s", tt.tool, up, status, got, tt.status, tt.want)
			}
		}
		// Nobody is there who could be asked: the tool hears that, and goes on or not.
		if status, got, _ := post(t, p.Base+"/api/v1/tools/"+up+"__asks/call", `{}`); (status == 200) == strings.Contains(got, `"error"`) {
			t.Errorf("a tool that asks: HTTP %d %s", status, got)
		}
	}
	if status, got, _ := post(t, p.Base+"/api/v1/tools/text/call?profile=few", `{}`); status != 200 {
		t.Errorf("in a profile: HTTP %d %s", status, got)
	}
	if status, got, _ := post(t, p.Base+"/api/v1/tools/structured/call?profile=few", `{}`); status != 404 {
		t.Errorf("what a profile hides: HTTP %d %s", status, got)
	}
	if status, _, _ := post(t, p.Base+"/api/v1/tools/text/call?profile=none", `{}`); status != 404 {
		t.Errorf("in a profile that is not there: HTTP %d", status)
	}
	if status, _, _ := post(t, p.Base+"/api/v1/tools/legacy__text/call", `{}`, "Content-Type", "text/plain"); status != 415 {
		t.Errorf("another type: HTTP %d", status)
	}
	if status, _, _ := post(t, p.Base+"/api/v1/tools/legacy__text/call", `{}`, "Origin", "https://elsewhere.example"); status != 403 {
		t.Errorf("another origin: HTTP %d", status)
	}
	big := `{"a":"` + strings.Repeat("x", 5<<20) + `"}`
	if status, _, _ := post(t, p.Base+"/api/v1/tools/legacy__echo/call", big); status != 413 {
		t.Errorf("a body that is too long: HTTP %d", status)
	}
}

// The command line gives what the endpoint does.
func TestTheCommandLineGivesTheSame(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "desk", "")
	for tool, want := range map[string]string{
		"text": "good\n\"day\"\n", "structured": `{"n":9007199254740993}` + "\n", "blocks": `[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"}]` + "\n",
	} {
		if r := run(t, nil, nil, "call", "--url", p.URL, "one__"+tool); r.Code != 0 || r.Stdout != want {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	if r := run(t, nil, nil, "call", "--url", p.URL, "one__fails"); r.Code != 1 || r.Stdout != "" || !strings.Contains(r.Stderr, "no such book") {
		t.Errorf("a tool that fails: %+v", r)
	}
}

func TestCallsWithoutTheProtocolNeedWhatOthersNeed(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, testmcp.Config(`{"profiles":{"few":{"servers":["one"],"tool_policy":{"expose":["text"]}},"all":{"servers":["one"]}},
		"auth":{"tokens":[{"name":"alice","token":"alices"},{"name":"bob","token":"bobs","profile":"few"}]}}`,
		map[string]string{"one": rec.Entry("desk", nil)}), testmcp.WithoutReady())
	for _, tt := range []struct {
		token, tool, query string
		want               int
	}{
		{"", "text", "", 401}, {"wrong", "text", "", 401}, {"alices", "text", "", 200}, {"alices", "structured", "", 200}, {"alices", "structured", "?profile=few", 404},
		{"bobs", "text", "", 200}, {"bobs", "structured", "", 404}, {"bobs", "text", "?profile=few", 200}, {"bobs", "structured", "?profile=all", 404}, {"bobs", "text", "?profile=all", 404},
	} {
		var head []string
		if tt.token != "" {
			head = []string{"Authorization", "Bearer " + tt.token}
		}
		if status, got, _ := post(t, p.Base+"/api/v1/tools/one__"+tt.tool+"/call"+tt.query, `{}`, head...); status != tt.want {
			t.Errorf("%+v: HTTP %d %s", tt, status, got)
		}
	}
	for _, r := range rec.All() {
		if frame := string(r.Frame); strings.Contains(frame, "alices") || strings.Contains(frame, "bobs") {
			t.Errorf("the server saw a token: %s", r.Frame)
		}
	}
}
