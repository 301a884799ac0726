package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func fixed(name, value string) config.ArgumentOverride {
	return config.ArgumentOverride{Name: name, Fixed: json.RawMessage(value)}
}

func byDefault(name, value string) config.ArgumentOverride {
	return config.ArgumentOverride{Name: name, Default: json.RawMessage(value)}
}

func TestSchemasOfGivenArguments(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		args         []config.ArgumentOverride
		want         string
	}{
		{"a fixed one", `{"type":"object","properties":{"path":{"type":"string"},"n":{"maximum":9007199254740993}},"required":["path","n"]}`,
			[]config.ArgumentOverride{fixed("path", `"/data"`)}, `{"type":"object","properties":{"n":{"maximum":9007199254740993}},"required":["n"]}`},
		{"the only one", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
			[]config.ArgumentOverride{fixed("path", `"/data"`)}, `{"type":"object","properties":{}}`},
		{"a default one", `{"properties":{"n":{"type":"integer"},"m":{}},"type":"object","required":["m","n"]}`,
			[]config.ArgumentOverride{byDefault("n", `10`)}, `{"properties":{"n":{"default":10,"type":"integer"},"m":{}},"type":"object","required":["m"]}`},
		{"another default", `{"type":"object","properties":{"n":{"default":5,"type":"integer"}}}`,
			[]config.ArgumentOverride{byDefault("n", `10`)}, `{"type":"object","properties":{"n":{"default":10,"type":"integer"}}}`},
		{"both, and one that is not there", `{ "type" : "object", "properties" : { "a": {}, "b": {}, "c": {} }, "required" : ["a", "b", "c"] }`,
			[]config.ArgumentOverride{fixed("a", `1`), byDefault("b", `{"x":[1]}`), fixed("z", `0`)}, `{ "type" : "object", "properties" : { "b": {"default":{"x":[1]}}, "c": {} }, "required" : ["c"] }`},
		{"a property that is a mere true", `{"type":"object","properties":{"n":true},"required":["n"]}`,
			[]config.ArgumentOverride{byDefault("n", `1`)}, `{"type":"object","properties":{"n":true}}`},
		{"an escaped name", `{"type":"object","properties":{"p\u0061th":{}},"required":["p\u0061th","x"]}`,
			[]config.ArgumentOverride{fixed("path", `1`)}, `{"type":"object","properties":{},"required":["x"]}`},
		{"no properties", `{"type":"object"}`, []config.ArgumentOverride{fixed("path", `1`), byDefault("n", `1`)}, `{"type":"object"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := parseOffer(Tool, []byte(`{"name":"t","inputSchema":`+c.schema+`}`))
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range []bool{false, true} {
				it := &Item{Kind: Tool, Name: "t", Wire: "t", offer: o, raw: raw, over: config.ToolOverride{Arguments: c.args}}
				it.render(nil)
				if got := string(it.text[classModern]); got != `{"name":"t","inputSchema":`+c.want+`}` {
					t.Errorf("the schema is %s", got)
				}
			}
		})
	}
}

func TestCallsWithGivenArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, `{"name":"find","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"limit":{}},"required":["path"]}}`)
		args := []config.ArgumentOverride{fixed("path", `"/data"`), byDefault("limit", `10`)}
		st := newStage(t, Options{Shape: Shape{Lazy: lazyOf(config.LazySearchOnly)}}, func(c *config.Server) {
			c.Tools = map[string]config.ToolOverride{"find": {Name: "look", Arguments: args}}
		}, s)
		defer st.stop()
		for _, c := range []struct{ name, given, want string }{
			{"none", `{}`, `{"path":"/data","limit":10}`},
			{"others", `{"q":9007199254740993}`, `{"path":"/data","limit":10,"q":9007199254740993}`},
			{"its own limit", `{"limit":3}`, `{"path":"/data","limit":3}`},
			{"no limit at all", `{"limit":null}`, `{"path":"/data","limit":null}`},
			{"a path", `{"path":"/etc"}`, ""},
			{"the same path", `{"path":"/data"}`, ""},
			{"a path in another spelling", `{"p\u0061th":"/etc"}`, ""},
			{"a path in another case", `{"PATH":"/etc"}`, ""},
		} {
			calls := map[string]string{callOf("a__look", c.given): ViewAll, callOf("call_tool", `{"name":"a__look","arguments":`+c.given+`}`): ViewAll,
				callOf("find", c.given): ServerView("a")}
			for raw, view := range calls {
				for _, who := range []*Caller{legacyCaller(), modernCaller()} {
					who.View = view
					before := len(s.received("tools/call"))
					answer := st.text(who, raw)
					seen := s.received("tools/call")[before:]
					refused := strings.Contains(answer, `"code":-32602`) && strings.Contains(answer, "is given by the proxy itself")
					if refused != (c.want == "") || len(seen) > 0 == refused {
						t.Errorf("%s: %s is answered %s, and the server saw %q", c.name, raw, answer, seen)
					} else if !refused && (!strings.Contains(seen[0], `"arguments":`+c.want) || !strings.Contains(seen[0], `"name":"find"`)) {
						t.Errorf("%s: the server saw %q", c.name, seen)
					}
				}
			}
		}
		before := len(s.received("tools/call"))
		st.text(legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__look"}}`)
		if seen := s.received("tools/call")[before:]; len(seen) != 1 || !strings.Contains(seen[0], `"arguments":{"path":"/data","limit":10}`) {
			t.Errorf("a call without arguments is %q", seen)
		}
		if got := st.callIn(ViewAll, "search_tools", `{"query":"look"}`); !strings.Contains(got, `"input_schema":{"type":"object","properties":{"limit":{"default":10}}}`) {
			t.Errorf("found: %s", got)
		}
	})
}

// A fixed argument that a modern server wants repeated in a header is repeated for it, and not asked of clients.
func TestHeadersOfGivenArguments(t *testing.T) {
	params := paramHeaders([]byte(`{"properties":{"r":{"type":"string","x-mcp-header":"Region"},"z":{"type":"integer","x-mcp-header":"Zone"}}}`))
	over := []config.ArgumentOverride{fixed("r", `"eu"`), byDefault("z", `7`)}
	if got := unfixed(params, over); len(got) != 1 || got[0].name != "Zone" {
		t.Errorf("clients repeat %v", got)
	}
	got := headersFor(params, withArguments(nil, over))
	if len(got) != 2 || got[0].Value != "eu" || got[1].Value != "7" {
		t.Errorf("the server gets %v", got)
	}
	if got := headersFor(params, withArguments([]byte(`{"z":8}`), over)); got[1].Value != "8" {
		t.Errorf("the server gets %v", got)
	}
}

// FuzzGivenArguments: what is sent is JSON, has the fixed argument once and as it was fixed, and all else that was given.
func FuzzGivenArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"b":{"path":1}}`, `{"limit":1,"x":[{}]}`} {
		f.Add(s)
	}
	over := []config.ArgumentOverride{fixed("path", `"/data"`), byDefault("limit", `10`)}
	f.Fuzz(func(t *testing.T, args string) {
		fr, err := wire.Parse([]byte(callOf("t", args)), wire.Downstream, wire.Limits{})
		if err != nil || !json.Valid([]byte(args)) || args == "" || args[0] != '{' {
			return
		}
		c := &call{req: &Request{Frame: fr}}
		if c.givesFixed(&Item{over: config.ToolOverride{Arguments: over}}) != "" {
			return
		}
		out := withArguments(fr.Body.Get(fr.Raw, "arguments").Of(fr.Raw), over)
		var before, after map[string]json.RawMessage
		if json.Unmarshal([]byte(args), &before) != nil {
			return
		}
		if err := json.Unmarshal(out, &after); err != nil || string(after["path"]) != `"/data"` || strings.Count(string(out), `"path":"/data"`) < 1 {
			t.Errorf("%s becomes %s (%v)", args, out, err)
		}
		for name := range before {
			if _, ok := after[name]; !ok {
				t.Errorf("%s loses %q: %s", args, name, out)
			}
		}
	})
}
