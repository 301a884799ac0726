package proxy

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
)

// mended parses and mends an item and tells what clients get of it.
func mended(t *testing.T, k Kind, raw string) (out string, o *offer, reg *prometheus.Registry) {
	t.Helper()
	o, err := parseOffer(k, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	reg = prometheus.NewRegistry()
	c := count.New(reg)
	c.Upstream("up")
	o.mend(c, "up")
	switch {
	case o.withheld != "":
		return "withheld: " + o.withheld, o, reg
	case o.fixed != nil:
		return string(o.fixed), o, reg
	}
	return string(o.raw), o, reg
}

// One tool that a client cannot decode costs it the whole list. What can be repaired without a change of meaning is,
// and what cannot is withheld.
func TestRepairsOfInputSchemas(t *testing.T) {
	for _, c := range []struct{ schema, want string }{ // want: the schema that clients get, "=" for the same
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, "="},
		{`{"properties":{},"type":"object","x":1e400}`, "="},
		{`{}`, `{"type":"object"}`},
		{`{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{`{"$ref":"#/$defs/x"}`, `{"type":"object","$ref":"#/$defs/x"}`},
		{`{"type":["object","null"]}`, `{"type":"object"}`},
		{`{"type":["null", "object"],"a":1}`, `{"type":"object","a":1}`},
		{`null`, `{"type":"object"}`},
		{`true`, `{"type":"object"}`},
		{``, `{"type":"object"}`},
		{`false`, "withheld"},
		{`"object"`, "withheld"},
		{`[]`, "withheld"},
		{`5`, "withheld"},
		{`{"type":"string"}`, "withheld"},
		{`{"type":["string","null"]}`, "withheld"},
		{`{"type":[]}`, "withheld"},
		{`{"type":null}`, "withheld"},
	} {
		tool := `{"name":"t","inputSchema":` + c.schema + `}`
		if c.schema == "" {
			tool = `{"name":"t"}`
		}
		got, _, reg := mended(t, Tool, tool)
		repairs := metricOf(t, reg, "mcp_proxy_repairs_total", "upstream", "up", "kind", count.RepairInputSchema)
		leftOut := metricOf(t, reg, "mcp_proxy_repairs_total", "upstream", "up", "kind", count.RepairToolLeftOut)
		switch {
		case c.want == "withheld":
			if !strings.HasPrefix(got, "withheld: ") || leftOut != 1 {
				t.Errorf("%s: %s, counted %v", c.schema, got, leftOut)
			}
		case c.want == "=":
			if got != tool || repairs != 0 {
				t.Errorf("%s: %s", c.schema, got)
			}
		default:
			if !strings.Contains(got, `"inputSchema":`+c.want) || !strings.Contains(got, `"name":"t"`) || repairs != 1 {
				t.Errorf("%s: %s, counted %v; want %s", c.schema, got, repairs, c.want)
			}
		}
	}
}

func TestRepairsOfMembers(t *testing.T) {
	for _, c := range []struct {
		kind      Kind
		raw, want string // "=" for the same
	}{
		{Tool, `{"name":"t","title":"T","description":"d","annotations":{},"_meta":{},"icons":[],"inputSchema":{"type":"object"}}`, "="},
		{Tool, `{"name":"t","title":null,"description":null,"inputSchema":{"type":"object"},"annotations":null}`, `{"name":"t","inputSchema":{"type":"object"}}`},
		{Tool, `{"name":"t","unknown":null,"inputSchema":{"type":"object"}}`, "="},
		{Tool, `{"name":"t","description":7,"inputSchema":{"type":"object"}}`, `withheld: its member "description" has the wrong type`},
		{Tool, `{"name":"t","annotations":[],"inputSchema":{"type":"object"}}`, `withheld: its member "annotations" has the wrong type`},
		{Tool, `{"name":"t","icons":{},"inputSchema":{"type":"object"}}`, `withheld: its member "icons" has the wrong type`},
		{Tool, `{"name":"t","execution":"later","inputSchema":{"type":"object"}}`, `withheld: its member "execution" has the wrong type`},
		{Prompt, `{"name":"p","arguments":[{"name":"a"}]}`, "="},
		{Prompt, `{"name":"p","arguments":null}`, `{"name":"p"}`},
		{Prompt, `{"name":"p","arguments":{}}`, `withheld: its member "arguments" has the wrong type`},
		{Resource, `{"uri":"a:b","name":"r","mimeType":"text/plain"}`, "="},
		{Resource, `{"uri":"a:b","name":"r","mimeType":5}`, `withheld: its member "mimeType" has the wrong type`},
		{Resource, `{"uri":"a:b"}`, `withheld: it has no name`},
		{Resource, `{"uri":"a:b","name":null}`, `withheld: it has no name`},
		{Template, `{"uriTemplate":"a:{b}","name":"t"}`, "="},
		{Template, `{"uriTemplate":"a:{b}"}`, `withheld: it has no name`},
	} {
		want := c.want
		if want == "=" {
			want = c.raw
		}
		if got, _, _ := mended(t, c.kind, c.raw); got != want {
			t.Errorf("%s becomes\n%s, want\n%s", c.raw, got, want)
		}
	}
}

func TestItemsWithoutAUsableName(t *testing.T) {
	for _, raw := range []string{`null`, `[]`, `"t"`, `7`, `{}`, `{"name":""}`, `{"name":null}`, `{"name":7}`, `{"Name":"t"}`, `{"name":["t"]}`} {
		if o, err := parseOffer(Tool, []byte(raw)); err == nil {
			t.Errorf("%s is the tool %q", raw, o.wire)
		}
	}
	o, err := parseOffer(Tool, []byte(`{"name":"\u0074","name":"last"}`))
	if err != nil || o.wire != "last" {
		t.Errorf("of two names %+v, %v is taken", o, err)
	}
}

// Only modern clients take an output schema that is not one of an object.
func TestOutputSchemas(t *testing.T) {
	for schema, odd := range map[string]bool{`{"type":"object"}`: false, `{"type":"array"}`: true, `{}`: true, `true`: true, `{"type":["object"]}`: true} {
		_, o, reg := mended(t, Tool, `{"name":"t","inputSchema":{"type":"object"},"outputSchema":`+schema+`}`)
		it := &Item{Kind: Tool, Name: "t", Wire: "t", offer: o}
		it.render(nil)
		legacy, modern := string(it.text[classLegacy]), string(it.text[classModern])
		if strings.Contains(legacy, "outputSchema") == odd || !strings.Contains(modern, `"outputSchema":`+schema) {
			t.Errorf("%s: legacy clients see %s, modern ones %s", schema, legacy, modern)
		}
		if n := metricOf(t, reg, "mcp_proxy_repairs_total", "upstream", "up", "kind", count.RepairOutputSchema); (n == 1) != odd {
			t.Errorf("%s: %v repairs are counted", schema, n)
		}
		it = &Item{Kind: Tool, Name: "t", Wire: "t", offer: o, raw: true}
		it.render(nil)
		if string(it.text[classLegacy]) != string(o.raw) {
			t.Errorf("by its wire name: %s", it.text[classLegacy])
		}
	}
}

// A name that says less than the wire name leaves the wire name in the title.
func TestRenamedItems(t *testing.T) {
	for _, c := range []struct{ raw, name, why, want string }{
		{`{"name":"t","inputSchema":{"type":"object"}}`, "s__t", "", `{"name":"s__t","inputSchema":{"type":"object"}}`},
		{`{ "inputSchema":{"type":"object"} , "name" : "t" }`, "s__t", "", `{ "inputSchema":{"type":"object"} , "name" : "s__t" }`},
		{`{"name":"a.b","inputSchema":{"type":"object"}}`, "s__a_b_1234", whyCharacters, `{"title":"a.b","name":"s__a_b_1234","inputSchema":{"type":"object"}}`},
		{`{"name":"a.b","title":"A","inputSchema":{"type":"object"}}`, "s__a_b_1234", whyCharacters, `{"name":"s__a_b_1234","title":"A","inputSchema":{"type":"object"}}`},
	} {
		_, o, _ := mended(t, Tool, c.raw)
		it := &Item{Kind: Tool, Name: c.name, Wire: o.wire, Why: c.why, offer: o}
		it.render(nil)
		if got := string(it.text[classModern]); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
