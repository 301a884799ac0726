package door

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestMessagesThatTwoReadersWouldReadDifferentlyAreRefused: some readers take the first of two equal names, some the
// last, some do not look at case, and to one that folds Unicode "ſ" is an s and the Kelvin sign a k. What is checked
// must be what is run, so none of them gets further than the door.
func TestMessagesThatTwoReadersWouldReadDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, "")
	// Each is put at the place of a harmless message's members; META stands for what the era needs.
	tests := map[string]string{
		"method in other case":             `"method":"tools/list","Method":"tools/call","params":{META"name":"up0__secret"}`,
		"method in capitals first":         `"METHOD":"tools/call","method":"tools/list","params":{META"name":"up0__secret"}`,
		"method twice":                     `"method":"tools/list","method":"tools/call","params":{META"name":"up0__secret"}`,
		"method only in other case":        `"Method":"tools/call","params":{META"name":"up0__secret"}`,
		"method escaped and plain":         `"method":"tools/list","\u006dethod":"tools/call","params":{META"name":"up0__secret"}`,
		"method in other case, escaped":    `"method":"tools/list","\u004dethod":"tools/call","params":{META"name":"up0__secret"}`,
		"params in other case":             `"method":"tools/call","params":{META"name":"up0__echo"},"Params":{META"name":"up0__secret"}`,
		"params with a long s":             `"method":"tools/call","params":{META"name":"up0__echo"},"param` + "\u017f" + `":{"name":"up0__secret"}`,
		"params with a long s, escaped":    `"method":"tools/call","params":{META"name":"up0__echo"},"param\u017f":{"name":"up0__secret"}`,
		"params twice":                     `"method":"tools/call","params":{META"name":"up0__echo"},"params":{META"name":"up0__secret"}`,
		"id twice":                         `"id":2,"method":"tools/call","params":{META"name":"up0__echo"}`,
		"id in other case":                 `"ID":2,"method":"tools/call","params":{META"name":"up0__echo"}`,
		"jsonrpc in other case":            `"JSONRPC":"1.0","method":"tools/call","params":{META"name":"up0__echo"}`,
		"name twice":                       `"method":"tools/call","params":{META"name":"up0__echo","name":"up0__secret"}`,
		"name in other case":               `"method":"tools/call","params":{META"name":"up0__echo","Name":"up0__secret"}`,
		"name only in other case":          `"method":"tools/call","params":{META"NAME":"up0__secret"}`,
		"name escaped and plain":           `"method":"tools/call","params":{META"name":"up0__echo","n\u0061me":"up0__secret"}`,
		"arguments in other case":          `"method":"tools/call","params":{META"name":"up0__echo","arguments":{"text":"a"},"Arguments":{"text":"b"}}`,
		"arguments with a long s":          `"method":"tools/call","params":{META"name":"up0__echo","argument` + "\u017f" + `":{"text":"b"}}`,
		"token with a Kelvin sign":         `"method":"tools/call","params":{"_meta":{METAMEMBERS"progressToken":1,"progressTo` + "\u212a" + `en":2},"name":"up0__echo"}`,
		"token with an escaped Kelvin":     `"method":"tools/call","params":{"_meta":{METAMEMBERS"progressTo\u212aen":2},"name":"up0__echo"}`,
		"token twice":                      `"method":"tools/call","params":{"_meta":{METAMEMBERS"progressToken":1,"progressToken":2},"name":"up0__echo"}`,
		"_meta twice":                      `"method":"tools/call","params":{META"_meta":{METAMEMBERS"progressToken":1},"_meta":{METAMEMBERS"a":1},"name":"up0__echo"}`,
		"unknown members that fold to one": `"method":"tools/call","x":1,"X":2,"params":{META"name":"up0__echo"}`,
	}
	for _, e := range eras {
		c := p.Client(e.era)
		for name, members := range tests {
			t.Run(e.name+", "+name, func(t *testing.T) {
				a := post(c, `{"jsonrpc":"2.0","id":1,`+withMeta(c, members)+`}`, "tools/call", testmcp.ToolParams("up0__echo", ""))
				if a.Status != 400 || a.Code() != codeInvalidRequest || a.Result() != nil {
					t.Errorf("HTTP %d, %s %s", a.Status, a.Raw, a.Body)
				}
			})
		}
	}
	for i, rec := range recs {
		if n := rec.Count(testmcp.Received("tools/call")); n != 0 {
			t.Errorf("%d of these messages reached the upstream up%d", n, i)
		}
	}
}

// withMeta fills in what the client's era wants in _meta.
func withMeta(c *testmcp.Client, members string) string {
	inner := ""
	if c.Era == testmcp.Modern {
		inner = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	comma := func(s string) string {
		if s != "" {
			s += ","
		}
		return s
	}
	members = strings.ReplaceAll(members, "METAMEMBERS", comma(inner))
	if inner != "" && !strings.Contains(members, `"_meta"`) {
		inner = `"_meta":{` + inner + `}`
	} else {
		inner = ""
	}
	return strings.ReplaceAll(members, "META", comma(inner))
}

// TestNamesMayBeEscaped: an escaped spelling of a name is that name, for us and for the upstream.
func TestNamesMayBeEscaped(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, "")
	members := `"\u006dethod":"tools\/call","p\u0061rams":{META"n\u0061me":"up%__\u0065cho","\u0061rguments":{"t\u0065xt":"\u0078"}}`
	for _, e := range eras {
		c := p.Client(e.era)
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				n := string(rune('0' + i))
				body := `{"jsonrpc":"2.0","id":1,` + withMeta(c, strings.ReplaceAll(members, "%", n)) + `}`
				wantText(t, post(c, body, "tools/call", testmcp.ToolParams("up"+n+"__echo", "")), "x")
				if recs[i].Count(testmcp.CalledTool("echo")) == 0 {
					t.Error("the upstream was not called by its own name")
				}
			})
		}
	}
}

// TestKeysOfArgumentsAreTheToolsOwn: below the levels that a proxy reads, case and repetition mean what the tool says.
func TestKeysOfArgumentsAreTheToolsOwn(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, "")
	args := `{"text":"x","Text":"y","TEXT":[{"a":1,"A":2,"a":3}],"name":"up0__secret","method":"tools/list","\u0061":1,"n":12345678901234567890.10}`
	for _, e := range eras {
		c := p.Client(e.era)
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				c.CallTool("up"+string(rune('0'+i))+"__echo", args)
				r := recs[i].Wait(t, testmcp.CalledTool("echo"))
				if got := string(r.Frame.At("params", "arguments")); got != args {
					t.Errorf("the tool got the arguments\n%s, want\n%s", got, args)
				}
			})
		}
	}
}

// TestNoMessageCanCarryASecondOne: a line break between tokens is legal JSON and also what ends a message on stdio.
func TestNoMessageCanCarryASecondOne(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": rec.Entry("door", nil, `"tool_policy":{"deny":["secret"]}`)})
	smuggled := `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"secret"}}`
	for _, e := range eras {
		c := p.Client(e.era)
		for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			t.Run(e.name+", "+name, func(t *testing.T) {
				params := `{"name":"up__echo","arguments":{"text":"x","inner":` + end + smuggled + end + `}}`
				wantText(t, c.Call("tools/call", params), "x")
				if a := c.CallTool("up__secret", ""); a.Code() != codeInvalidParams {
					t.Errorf("the denied tool was answered %s", a.Raw)
				}
			})
		}
	}
	if n := rec.Count(testmcp.CalledTool("secret")); n != 0 {
		t.Errorf("the denied tool was called %d times", n)
	}
}
