package proxy

import (
	"fmt"
	"strings"
	"testing"
)

func TestAnnotationsOfArguments(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{"one", `{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`, "Region=a"},
		{"all types", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"integer","x-mcp-header":"B"},"c":{"type":"boolean","x-mcp-header":"C"}}}`, "A=a B=b C=c"},
		{"types that do not count", `{"properties":{"a":{"type":"number","x-mcp-header":"A"},"b":{"type":"array","x-mcp-header":"B"},"c":{"type":"object","x-mcp-header":"C"},"d":{"x-mcp-header":"D"}}}`, ""},
		{"deeper", `{"properties":{"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"B"}}}}}`, "B=a.b"},
		{"only by properties", `{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"B"}}},"anyOf":[{"properties":{"c":{"type":"string","x-mcp-header":"C"}}}]}`, ""},
		{"at the root", `{"type":"string","x-mcp-header":"A"}`, ""},
		{"no token", `{"properties":{"a":{"type":"string","x-mcp-header":"a b"},"b":{"type":"string","x-mcp-header":""},"c":{"type":"string","x-mcp-header":"ä"},"d":{"type":"string","x-mcp-header":"x\ny"},"e":{"type":"string","x-mcp-header":7}}}`, ""},
		{"the same twice", `{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}`, "X=a"},
		{"an escaped name", `{"properties":{"\u0061b":{"type":"string","x-mcp-header":"\u0041"}}}`, "A=ab"},
		{"no schema", ``, ""},
		{"a boolean", `true`, ""},
		{"very deep", strings.Repeat(`{"properties":{"a":`, 100) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat("}}", 100), ""},
	} {
		var got []string
		for _, p := range paramHeaders([]byte(c.schema)) {
			got = append(got, p.name+"="+strings.Join(p.path, "."))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, strings.Join(got, " "), c.want)
		}
	}
}

func TestHeadersOfArguments(t *testing.T) {
	params := []paramHeader{{"A", []string{"a"}}, {"B", []string{"b", "c"}}}
	for args, want := range map[string]string{
		`{"a":"x"}`:                  "A=x",
		`{"a":"ä\n"}`:                "A=ä\n",
		`{"a":12}`:                   "A=12",
		`{"a":12345678901234567890}`: "A=12345678901234567890",
		`{"a":true}`:                 "A=true",
		`{"a":null}`:                 "",
		`{"a":{}}`:                   "",
		`{"a":[]}`:                   "",
		`{"a":""}`:                   "A=",
		`{"b":{"c":"y"},"a":"x"}`:    "A=x B=y",
		`{"b":"c"}`:                  "",
		`{}`:                         "",
		``:                           "",
	} {
		var got []string
		for _, p := range headersFor(params, []byte(args)) {
			got = append(got, p.Name+"="+p.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", args, strings.Join(got, " "), want)
		}
	}
}

func TestHeadersThatDisagree(t *testing.T) {
	params := []paramHeader{{"A", []string{"a"}}}
	for _, c := range []struct {
		args   string
		header string // "-" for none, "!" for a malformed one
		want   string // part of the error
	}{
		{`{"a":"x"}`, "x", ""},
		{`{"a":"x"}`, "y", "something else"},
		{`{"a":"x"}`, "-", "missing or malformed"},
		{`{"a":"x"}`, "!", "missing or malformed"},
		{`{}`, "-", ""},
		{`{}`, "x", "the argument \"a\" is not"},
		{`{"a":null}`, "x", "the argument \"a\" is not"},
		{`{"a":42}`, "42", ""},
		{`{"a":42}`, "42.0", ""},
		{`{"a":42}`, " 42", ""},
		{`{"a":42}`, "43", "something else"},
		{`{"a":9007199254740993}`, "9007199254740992", "something else"},
		{`{"a":42}`, "0x2a", "something else"},
		{`{"a":42}`, "84/2", "something else"},
		{`{"a":1}`, "1e0", "something else"},
		{`{"a":true}`, "true", ""},
		{`{"a":true}`, "TRUE", "something else"},
		{`{"a":""}`, "", ""},
	} {
		err := checkHeaders(params, []byte(c.args), func(name string) (string, bool) {
			if name != "Mcp-Param-A" {
				t.Errorf("asked for %s", name)
			}
			switch c.header {
			case "-":
				return "", false
			case "!":
				return "?", false
			}
			return c.header, true
		})
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s with %q: %v, want %q", c.args, c.header, err, c.want)
		}
	}
}
