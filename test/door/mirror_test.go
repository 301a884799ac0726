package door

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const (
	keyVersion = "io.modelcontextprotocol/protocolVersion"
	keyCaps    = "io.modelcontextprotocol/clientCapabilities"
	keyInfo    = "io.modelcontextprotocol/clientInfo"
)

// stateless gives a request of the modern era with exactly this _meta.
func stateless(meta, method, params string) string {
	if params != "" {
		params = "," + params
	}
	return `{"jsonrpc":"2.0","id":"m","method":"` + method + `","params":{"_meta":{` + meta + `}` + params + `}}`
}

// disagreement is a stateless request whose headers and body may not say the same.
type disagreement struct {
	name, meta, method, params string
	edits                      []string // of the headers: name, value, …
	status, code               int      // code 0 is a result
	says                       string
}

func disagreements() []disagreement {
	const whole = `"` + keyVersion + `":"2026-07-28","` + keyCaps + `":{},"` + keyInfo + `":{"name":"x","version":"1"}`
	const (
		call   = `"name":"up__echo","arguments":{"text":"x"}`
		prompt = `"name":"up__greet","arguments":{"who":"x"}`
		read   = `"uri":"test://door/readme"`
	)
	return []disagreement{
		{"all agree", whole, "tools/call", call, nil, 200, 0, ""},
		{"blanks around values", whole, "tools/call", call, []string{"Mcp-Method", " tools/call ", "Mcp-Name", " up__echo "}, 200, 0, ""},
		{"another method", whole, "tools/call", call, []string{"Mcp-Method", "tools/list"}, 400, codeHeaderMismatch, "Mcp-Method"},
		{"method in other case", whole, "tools/call", call, []string{"Mcp-Method", "Tools/Call"}, 400, codeHeaderMismatch, "Mcp-Method"},
		{"no method", whole, "tools/call", call, []string{"Mcp-Method", ""}, 400, codeHeaderMismatch, "Mcp-Method"},
		{"no method of a list", whole, "tools/list", "", []string{"Mcp-Method", ""}, 400, codeHeaderMismatch, "Mcp-Method"},
		{"another name", whole, "tools/call", call, []string{"Mcp-Name", "up__secret"}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"name in other case", whole, "tools/call", call, []string{"Mcp-Name", "UP__echo"}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"no name", whole, "tools/call", call, []string{"Mcp-Name", ""}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"no name of a prompt", whole, "prompts/get", prompt, []string{"Mcp-Name", ""}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"no URI", whole, "resources/read", read, []string{"Mcp-Name", ""}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"another URI", whole, "resources/read", read, []string{"Mcp-Name", "test://door/other"}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"prompt", whole, "prompts/get", prompt, nil, 200, 0, ""},
		{"resource", whole, "resources/read", read, nil, 200, 0, ""},
		{"Base64 without need", whole, "tools/call", call, []string{"Mcp-Name", "=?base64?dXBfX2VjaG8=?="}, 200, 0, ""},
		{"broken Base64", whole, "tools/call", call, []string{"Mcp-Name", "=?base64?%%%?="}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"Base64 of another name", whole, "tools/call", call, []string{"Mcp-Name", "=?base64?dXBfX3NlY3JldA==?="}, 400, codeHeaderMismatch, "Mcp-Name"},
		{"another version in the header", whole, "tools/call", call, []string{"Mcp-Protocol-Version", "2025-11-25"}, 400, codeHeaderMismatch, "MCP-Protocol-Version"},
		{"a newer version in the header", whole, "tools/call", call, []string{"Mcp-Protocol-Version", "2099-01-01"}, 400, codeHeaderMismatch, "MCP-Protocol-Version"},
		{"no version in the header", whole, "tools/call", call, []string{"Mcp-Protocol-Version", ""}, 400, codeHeaderMismatch, "MCP-Protocol-Version"},
		{"another version in the body", strings.Replace(whole, "2026-07-28", "2025-11-25", 1), "tools/call", call, nil, 400, codeHeaderMismatch, "MCP-Protocol-Version"},
		{"no version in the body", `"` + keyCaps + `":{}`, "tools/call", call, nil, 400, codeInvalidParams, keyVersion},
		{"no _meta members", ``, "tools/call", call, nil, 400, codeInvalidParams, keyVersion},
		{"no capabilities", `"` + keyVersion + `":"2026-07-28"`, "tools/call", call, nil, 400, codeInvalidParams, keyCaps},
		{"capabilities of a wrong type", `"` + keyVersion + `":"2026-07-28","` + keyCaps + `":[]`, "tools/call", call, nil, 400, codeInvalidParams, keyCaps},
		{"version of a wrong type", `"` + keyVersion + `":20260728,"` + keyCaps + `":{}`, "tools/call", call, nil, 400, codeInvalidParams, keyVersion},
		{"no client info", `"` + keyVersion + `":"2026-07-28","` + keyCaps + `":{}`, "tools/call", call, nil, 200, 0, ""},
		{"unknown version, consistently", strings.Replace(whole, "2026-07-28", "2099-01-01", 1), "tools/call", call,
			[]string{"Mcp-Protocol-Version", "2099-01-01"}, 400, codeRevision, "2099-01-01"},
		{"unknown method", whole, "no/such", "", nil, 404, codeNoMethod, "no/such"},
		{"ping is gone", whole, "ping", "", nil, 404, codeNoMethod, "ping"},
		{"initialize is gone", whole, "initialize", `"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"x","version":"1"}`, nil, 404, codeNoMethod, "initialize"},
		{"setLevel is gone", whole, "logging/setLevel", `"level":"info"`, nil, 404, codeNoMethod, "logging/setLevel"},
		{"subscribe is gone", whole, "resources/subscribe", `"uri":"test://door/readme"`, nil, 404, codeNoMethod, "resources/subscribe"},
	}
}

// TestHeadersThatDisagreeWithTheBody: whoever routes by headers and whoever runs the body must mean the same request.
func TestHeadersThatDisagreeWithTheBody(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := p.Client(testmcp.Modern)
	for _, tt := range disagreements() {
		t.Run(tt.name, func(t *testing.T) {
			before := rec.Count(testmcp.Is(testmcp.In))
			a := post(c, stateless(tt.meta, tt.method, tt.params), tt.method, "{"+tt.params+"}", tt.edits...)
			if a.Status != tt.status || a.Code() != tt.code || string(a.ID) != `"m"` || (a.Result() == nil) != (tt.code != 0) {
				t.Errorf("HTTP %d, %s; want HTTP %d, code %d", a.Status, a.Body, tt.status, tt.code)
			}
			if tt.code == 0 {
				return
			}
			if !strings.Contains(a.Err().At("message").Str(), tt.says) {
				t.Errorf("the message does not name %s: %s", tt.says, a.Body)
			}
			if after := rec.Count(testmcp.Is(testmcp.In)); after != before {
				t.Error("the refused request reached the upstream")
			}
		})
	}
}

// TestHeadersThatAreGivenTwice: one reader takes the first, another the last.
func TestHeadersThatAreGivenTwice(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := p.Client(testmcp.Modern)
	params := testmcp.ToolParams("up__echo", "")
	for name, second := range map[string]string{"Mcp-Method": "tools/list", "Mcp-Name": "up__secret", "Mcp-Protocol-Version": testmcp.Rev2511} {
		t.Run(name, func(t *testing.T) {
			h := c.HeadersFor("tools/call", params)
			h.Add(name, second)
			wantRefusal(t, c.Do(http.MethodPost, c.Body("1", "tools/call", params), h).Final(), 400, codeHeaderMismatch, "1")
		})
	}
	if n := rec.Count(testmcp.Received("tools/call")); n != 0 {
		t.Errorf("%d of these requests reached the upstream", n)
	}
}

// TestEraIsDecidedForEachRequest: one client may use both on one URL, and to a stateless request a session means nothing.
func TestEraIsDecidedForEachRequest(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	legacy, modern := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
	for _, session := range []string{legacy.Session, "0123456789abcdef"} {
		modern.Header.Set("Mcp-Session-Id", session)
		a := modern.CallTool("up__echo", `{"text":"x"}`)
		wantText(t, a, "x")
		if a.Result().At("resultType").Str() != "complete" {
			t.Errorf("the stateless request was answered %s", a.Raw)
		}
		a = legacy.CallTool("up__echo", `{"text":"y"}`)
		wantText(t, a, "y")
		if a.Result().Has("resultType") {
			t.Errorf("the request of the session was answered %s", a.Raw)
		}
	}
}

// TestUnknownVersionIsAnsweredWithTheKnownOnes: so that a client can choose again.
func TestUnknownVersionIsAnsweredWithTheKnownOnes(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	c := testmcp.NewClient(t, p.URL, testmcp.Modern)
	c.Version = "2099-01-01"
	a := c.Try("server/discover", "")
	data := a.Err().At("data")
	var supported []string
	for _, v := range data.At("supported").Items() {
		supported = append(supported, v.Str())
	}
	if a.Status != 400 || a.Code() != codeRevision || data.At("requested").Str() != "2099-01-01" || !slices.Contains(supported, testmcp.Rev2607) {
		t.Errorf("HTTP %d, %s", a.Status, a.Body)
	}
}

// TestLegacyClientsNeedNoMirroringHeaders: the checks are those of the stateless era only.
func TestLegacyClientsNeedNoMirroringHeaders(t *testing.T) {
	t.Parallel()
	p, _ := one(t, "")
	c := p.Client(testmcp.Legacy)
	wantText(t, c.CallTool("up__echo", `{"text":"x"}`), "x")
	// Some send them all the same; nothing says that they count.
	c.Header.Set("Mcp-Method", "tools/list")
	c.Header.Set("Mcp-Name", "somebody__else")
	wantText(t, c.CallTool("up__echo", `{"text":"x"}`), "x")
}

// TestHeadersTowardsUpstreamsCarryTheirOwnNames: not those that the client knows.
func TestHeadersTowardsUpstreamsCarryTheirOwnNames(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": web("modern")(t, rec)})
	exposed := p.Client(testmcp.Modern).ToolNames()
	odd := exposed[slices.IndexFunc(exposed, func(n string) bool { return strings.HasPrefix(n, "up__gr") })]
	raw := testmcp.Connect(t, p.Server("up"), testmcp.Modern)
	tests := []struct{ name, method, params, header string }{
		{"tool", "tools/call", testmcp.ToolParams("up__echo", ""), "echo"},
		{"tool beyond ASCII", "tools/call", testmcp.ToolParams(odd, ""), testmcp.EncodeHeader("grüße")},
		{"prompt", "prompts/get", `{"name":"up__greet","arguments":{"who":"x"}}`, "greet"},
		{"resource", "resources/read", `{"uri":"test://door/readme"}`, "test://door/readme"},
		{"resource beyond ASCII", "resources/read", `{"uri":"test://door/größe"}`, testmcp.EncodeHeader("test://door/größe")},
		{"resource of a template", "resources/read", `{"uri":"test://door/item/7"}`, "test://door/item/7"},
	}
	for _, e := range eras {
		c := p.Client(e.era)
		for _, tt := range tests {
			t.Run(e.name+", "+tt.name, func(t *testing.T) {
				before := rec.Count(testmcp.Received(tt.method))
				c.Call(tt.method, tt.params)
				seen := rec.WaitN(t, before+1, testmcp.Received(tt.method))[before]
				if got := seen.Header.Values("Mcp-Name"); len(got) != 1 || got[0] != tt.header || seen.Header.Get("Mcp-Method") != tt.method {
					t.Errorf("the upstream saw Mcp-Name %q and Mcp-Method %q, want %q", got, seen.Header.Get("Mcp-Method"), tt.header)
				}
			})
		}
	}
	t.Run("own endpoint", func(t *testing.T) { wantText(t, raw.CallTool("grüße", ""), "grüße") })
}

const regional = `{"name":"regional","inputSchema":{"type":"object","properties":{
	"region":{"type":"string","x-mcp-header":"Region"},
	"count":{"type":"integer","x-mcp-header":"Count"},
	"dry":{"type":"boolean","x-mcp-header":"Dry-Run"},
	"place":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}},
	"free":{"type":"string"}}}}`

// TestHeadersThatRepeatArguments: they are checked against the arguments for stateless clients, and made anew from the
// arguments for the upstream, whoever calls.
func TestHeadersThatRepeatArguments(t *testing.T) {
	t.Parallel()
	srv := server([]string{"modern"})
	srv.Tools = append(srv.Tools, testmcp.Tool{Definition: regional, Handle: func(c *testmcp.Call) { c.Text("done") }})
	h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"up": h.Entry()})
	tests := []struct {
		name, args string
		edits      []string
		ok         bool
		upstream   map[string]string
	}{
		{"all", `{"region":"eu","count":42,"dry":true,"place":{"city":"Bern"},"free":"x"}`,
			[]string{"Mcp-Param-Region", "eu", "Mcp-Param-Count", "42", "Mcp-Param-Dry-Run", "true", "Mcp-Param-City", "Bern"}, true,
			map[string]string{"Region": "eu", "Count": "42", "Dry-Run": "true", "City": "Bern"}},
		{"none given", `{"free":"x"}`, nil, true, map[string]string{"Region": ""}},
		{"null is none", `{"region":null}`, nil, true, map[string]string{"Region": ""}},
		{"missing", `{"region":"eu"}`, nil, false, nil},
		{"another value", `{"region":"eu"}`, []string{"Mcp-Param-Region", "us"}, false, nil},
		{"other case", `{"region":"eu"}`, []string{"Mcp-Param-Region", "EU"}, false, nil},
		{"without the argument", `{}`, []string{"Mcp-Param-Region", "eu"}, false, nil},
		{"nested, another value", `{"place":{"city":"Bern"}}`, []string{"Mcp-Param-City", "Basel"}, false, nil},
		{"integer by value", `{"count":42}`, []string{"Mcp-Param-Count", "42.0"}, true, map[string]string{"Count": "42"}},
		{"another integer", `{"count":42}`, []string{"Mcp-Param-Count", "43"}, false, nil},
		{"big integers that differ in the last digit", `{"count":9007199254740993}`, []string{"Mcp-Param-Count", "9007199254740992"}, false, nil},
		{"beyond ASCII", `{"region":"Zürich"}`, []string{"Mcp-Param-Region", testmcp.EncodeHeader("Zürich")}, true, map[string]string{"Region": testmcp.EncodeHeader("Zürich")}},
		{"beyond ASCII, raw", `{"region":"Zürich"}`, []string{"Mcp-Param-Region", "Zürich"}, false, nil},
		{"broken Base64", `{"region":"eu"}`, []string{"Mcp-Param-Region", "=?base64?%%?="}, false, nil},
		{"blanks that count", `{"region":" eu "}`, []string{"Mcp-Param-Region", testmcp.EncodeHeader(" eu ")}, true, map[string]string{"Region": testmcp.EncodeHeader(" eu ")}},
		{"looks encoded", `{"region":"=?base64?ZXU=?="}`, []string{"Mcp-Param-Region", testmcp.EncodeHeader("=?base64?ZXU=?=")}, true,
			map[string]string{"Region": testmcp.EncodeHeader("=?base64?ZXU=?=")}},
	}
	modern, legacy := p.Client(testmcp.Modern), p.Client(testmcp.Legacy)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params := testmcp.ToolParams("up__regional", tt.args)
			before := h.Rec.Count(testmcp.CalledTool("regional"))
			a := post(modern, modern.Body("1", "tools/call", params), "tools/call", params, tt.edits...)
			if !tt.ok {
				wantRefusal(t, a, 400, codeHeaderMismatch, "1")
				if !strings.Contains(a.Err().At("message").Str(), "Mcp-Param-") || h.Rec.Count(testmcp.CalledTool("regional")) != before {
					t.Errorf("the refusal is %s", a.Body)
				}
				return
			}
			wantText(t, a, "done")
			wantText(t, legacy.Call("tools/call", params), "done") // has no such headers
			for _, r := range h.Rec.WaitN(t, before+2, testmcp.CalledTool("regional"))[before:] {
				for name, want := range tt.upstream {
					if got := r.Header.Get("Mcp-Param-" + name); got != want {
						t.Errorf("the upstream saw Mcp-Param-%s %q, want %q", name, got, want)
					}
				}
			}
		})
	}
}
