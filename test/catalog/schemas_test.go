package catalog

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// inputSchemas are what servers give as inputSchema, and what a client must get; none means that the tool is left out.
// The text is a member with its comma, or nothing.
var inputSchemas = []struct{ name, given, want string }{
	{"absent", ``, `{"type":"object"}`},
	{"null", `null`, `{"type":"object"}`},
	{"true", `true`, `{"type":"object"}`},
	{"empty", `{}`, `{"type":"object"}`},
	{"properties", `{"properties":{"n":{"maximum":9007199254740993}}}`, `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`},
	{"oneof", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`},
	{"either", `{"type":["object","null"],"x":1.10}`, `{"type":"object","x":1.10}`},
	{"string", `{"type":"string"}`, ``},
	{"number", `7`, ``},
	{"list", `[{"type":"object"}]`, ``},
	{"nothing", `false`, ``},
	{"good", `{"type":"object"}`, `{"type":"object"}`},
}

var _ = behaviour("sloppy-schemas", func() *testmcp.Server {
	s := &testmcp.Server{}
	for _, in := range inputSchemas {
		def := `{"name":"` + in.name + `"`
		if in.given != "" {
			def += `,"inputSchema":` + in.given
		}
		s.Tools = append(s.Tools, testmcp.Tool{Definition: def + `,"x-last":1.10}`, Handle: func(c *testmcp.Call) { c.Text(in.name) }})
	}
	return s
})

func TestInputSchemasThatNoClientTakesAreRepairedOrTheirToolsLeftOut(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "sloppy-schemas", "")
	for _, e := range eras {
		c := p.Client(e.era)
		got, listed := definitions(c), 0
		for _, in := range inputSchemas {
			tool := got["one__"+in.name]
			if in.want == "" {
				if tool != nil {
					t.Errorf("%s: %s is offered as %s", e.name, in.name, tool)
				}
				continue
			}
			listed++
			same(t, e.name+": the schema of "+in.name, string(tool.At("inputSchema")), in.want)
			same(t, e.name+": what follows it", string(tool.At("x-last")), "1.10")
			if text := c.CallTool("one__"+in.name, "").Text(); text != in.name {
				t.Errorf("%s: a call of %s gave %q", e.name, in.name, text)
			}
		}
		if len(got) != listed {
			t.Errorf("%s: %d tools are listed, want %d", e.name, len(got), listed)
		}
	}
	m := p.Metrics()
	if n := m.Sum("mcp_proxy_repairs_total", "upstream", "one", "kind", "input_schema"); n != 7 {
		t.Errorf("%v input schemas are counted as repaired, want 7", n)
	}
	if n := m.Sum("mcp_proxy_repairs_total", "upstream", "one", "kind", "item_left_out"); n != 4 {
		t.Errorf("%v tools are counted as left out, want 4", n)
	}
	holds(t, "the log line", p.WaitLog(`"name":"string"`), "withheld", `"upstream":"one"`)
}

func TestTheEndpointOfOneServerRepairsNothing(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "sloppy-schemas", "")
	for _, e := range eras {
		c := testmcp.Connect(t, p.Server("one"), e.era)
		got := definitions(c)
		if len(got) != len(inputSchemas) {
			t.Errorf("%s: %d tools are listed, want all %d", e.name, len(got), len(inputSchemas))
		}
		for _, in := range inputSchemas {
			same(t, e.name+": the schema of "+in.name, string(got[in.name].At("inputSchema")), in.given)
			if text := c.CallTool(in.name, "").Text(); text != in.name {
				t.Errorf("%s: a call of %s gave %q", e.name, in.name, text)
			}
		}
	}
}

// relayedSchemas are input schemas that are nobody's business on the way: definitions under their old name, references
// that lead nowhere or to themselves, and everything that a narrow idea of JSON Schema would trip over.
var relayedSchemas = map[string]string{
	"definitions": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"z":{"$ref":"#/definitions/Item"},"a":{"type":"string"}},"definitions":{"Item":{"type":"string"}}}`,
	"dangling":    `{"type":"object","properties":{"a":{"$ref":"#/$defs/Nowhere"}}}`,
	"recursive":   `{"type":"object","properties":{"a":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"}}}}}`,
	"itself":      `{"type":"object","$defs":{"A":{"$ref":"#/$defs/A"}},"properties":{"a":{"$ref":"#/$defs/A"}},"allOf":[{"$ref":"#"}]}`,
	"types":       `{"type":"object","properties":{"n":{"type":["number","null"]},"any":true,"none":false,"untyped":{},"c":{"const":1.10}}}`,
	"unions":      `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"l":{"prefixItems":[{"type":"string"},true]}},"oneOf":[{"required":["a"]}]}`,
	"dynamic":     `{"$dynamicAnchor":"n","type":"object","properties":{"a":{"$dynamicRef":"#n"},"f":{"format":"of-my-own"}},"x-y":[]}`,
	"boolean":     `{"type":"object","properties":{"a":{"exclusiveMinimum":true,"minimum":0}},"additionalProperties":{"type":"string"},"id":"old"}`,
}

var _ = behaviour("wild-schemas", func() *testmcp.Server {
	s := &testmcp.Server{}
	for name, schema := range relayedSchemas {
		s.Tools = append(s.Tools, testmcp.Tool{
			Definition: `{"name":"` + name + `","outputSchema":` + schema + `,"inputSchema":` + schema + `}`,
			Handle:     func(c *testmcp.Call) { c.Text(name) },
		})
	}
	return s
})

func TestSchemasAreNeitherResolvedNorRewritten(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "wild-schemas", "")
	for _, e := range eras {
		c := p.Client(e.era)
		got := definitions(c)
		for name, schema := range relayedSchemas {
			tool := got["one__"+name]
			same(t, e.name+": the input schema "+name, string(tool.At("inputSchema")), schema)
			same(t, e.name+": the output schema "+name, string(tool.At("outputSchema")), schema)
			if text := c.CallTool("one__"+name, "").Text(); text != name {
				t.Errorf("%s: a call of %s gave %q", e.name, name, text)
			}
		}
	}
}

const failedResult = `{"isError":true,"content":[{"type":"text","text":"auth failed"}],"structuredContent":{"code":1}}`

var _ = behaviour("promises-success", func() *testmcp.Server {
	return &testmcp.Server{Tools: []testmcp.Tool{{
		Definition: `{"name":"login","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["success"],"properties":{"success":{"type":"boolean"}}}}`,
		Handle:     func(c *testmcp.Call) { c.Result(failedResult) },
	}, {
		Definition: `{"name":"lie","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["success"]}}`,
		Handle: func(c *testmcp.Call) {
			c.Result(strings.Replace(failedResult, `"isError":true`, `"isError":false`, 1))
		},
	}}}
})

func TestResultsAreNotValidatedAgainstTheOutputSchema(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "promises-success", "")
	for _, e := range eras {
		c := p.Client(e.era)
		for tool, isError := range map[string]string{"login": "true", "lie": "false"} {
			got := c.CallTool("one__"+tool, "").Result()
			for member, want := range map[string]string{
				"isError": isError, "structuredContent": `{"code":1}`, "content": `[{"type":"text","text":"auth failed"}]`,
			} {
				same(t, e.name+": "+member+" of "+tool, string(got.At(member)), want)
			}
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_requests_total", "upstream", "one", "outcome", "tool_error"); n != 2 {
		t.Errorf("%v calls are counted as failed by the tool, want 2", n)
	}
}

// What only the newer era allows: an output schema and structured content that are no objects. Servers of
// the older one should not have them.
var _ = behaviour("newer-shapes", func() *testmcp.Server {
	return &testmcp.Server{Tools: []testmcp.Tool{{
		Definition: `{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"x":1.10}`,
		Handle: func(c *testmcp.Call) {
			c.Result(`{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1.10],"x":1.10}`)
		},
	}}}
})

// One such schema would cost an old client the whole list, whosever it is. A result of a server of its own era is not
// looked at: that is between the two.
func TestWhatOnlyNewClientsCanTakeIsLeftOutForOldOnes(t *testing.T) {
	t.Parallel()
	s := startAll(t, "newer-shapes", "")
	for _, k := range kinds {
		for _, e := range eras {
			c, what := s.Client(e.era), e.name+" of "+k.name
			tool, result := definitions(c)[k.tool("list")], c.CallTool(k.tool("list"), "").Result()
			schema, structured := "", ""
			if e.era == testmcp.Modern {
				schema = `{"type":"array"}`
			}
			if e.era == testmcp.Modern || k.era == testmcp.Legacy {
				structured = `[1.10]`
			}
			same(t, what+": the output schema", string(tool.At("outputSchema")), schema)
			same(t, what+": the structured content", string(result.At("structuredContent")), structured)
			same(t, what+": the rest", string(tool.At("x"))+string(result.At("x"))+result.At("content", 0, "text").Str(), "1.101.10[1]")
		}
	}
	m := s.Metrics()
	for _, k := range kinds {
		if m.Sum("mcp_proxy_repairs_total", "upstream", k.name, "kind", "output_schema") == 0 {
			t.Errorf("%s: what was left out of definitions is not counted", k.name)
		}
		if n := m.Sum("mcp_proxy_repairs_total", "upstream", k.name, "kind", "structured_content"); (n > 0) != (k.era == testmcp.Modern) {
			t.Errorf("%s: %v results are counted as changed", k.name, n)
		}
	}
}
