package catalog

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Texts with everything that decoding and encoding again would change: order and repetition of members, white space,
// the spelling of numbers and of strings, members and types that nobody knows. The line separator U+2028 stands in
// them as it is.
const (
	oddNumbers = `{"z":9007199254740993,"f":1.10,"e":1e400,"m":-0,"long":12345678901234567890123,"a":[ 1 ,2.50 ]}`

	oddTool = `{ "x-vendor":` + oddNumbers + ` , "name":"exact","title":"T \u2028` + "\u2028" + ` \ud83d\ude00","description":"lone \ud800, \/ and é",` +
		`"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["z"],"properties":{"z":{"$ref":"#/definitions/Item"},` +
		`"a":{"maximum":9007199254740993,"minimum":1.10}},"definitions":{"Item":{"type":"string"}},"x":{"twice":1,"twice":2}},` +
		`"outputSchema":{"type":"object","properties":{"id":{"maximum":9007199254740993}}},"annotations":{"readOnlyHint":true,"x-hint":1.10},` +
		`"icons":[{"src":"data:,x","sizes":["1x1"]}],"execution":{"taskSupport":"optional"},"_meta":{"example.com/n":9007199254740993}}`

	oddResult = `{"content":[{"type":"text","text":"a\ud800b"},{"type":"hologram","beam":9007199254740993 , "x":{}},` +
		`{"text":"` + "\u2028" + `","type":"text","annotations":{"priority":1.10}}],"structuredContent":` + oddNumbers +
		`, "x-unknown":[ 1 , {"twice":1,"twice":2} ],"isError":false,"_meta":{"example.com/n":9007199254740993}}`

	oddArguments = `{"id":9007199254740993,"f":1.10,"e":1e400, "twice":1,"twice":2,"z":"\ud800\/` + "\u2028" + `","deep":{"Name":1,"name":[ -0 ]},"a":null}`

	oddResource = `{"uri":"odd://one","name":"one","size":9007199254740993,"x-vendor":` + oddNumbers + `,"annotations":{"priority":1.10}}`
	oddPrompt   = `{"x-vendor":` + oddNumbers + `,"name":"ask","arguments":[{"name":"n","x":1.10}]}`
	oddTemplate = `{"uriTemplate":"odd://item/{id}","name":"item","x-vendor":` + oddNumbers + `}`
	oddContents = `{"contents":[{"uri":"odd://one","text":"\ud800","x":` + oddNumbers + `}],"x-unknown":1.10,"ttlMs":5,"cacheScope":"public","_meta":{"example.com/n":1.10}}`
	oddMessages = `{"messages":[{"role":"user","content":{"type":"hologram","beam":1e400}}],"x-unknown":` + oddNumbers + `,"_meta":{"example.com/n":1.10}}`
	oddError    = `{"data":` + oddNumbers + `,"code":-32000,"message":"refused \ud800","x":1.10}`
)

var _ = behaviour("odd", func() *testmcp.Server {
	return &testmcp.Server{
		Tools: []testmcp.Tool{
			{Definition: oddTool, Handle: func(c *testmcp.Call) { c.Result(oddResult) }},
			testmcp.SimpleTool("refuse", func(c *testmcp.Call) { c.RawError(oddError) }),
			testmcp.SimpleTool("tell", func(c *testmcp.Call) {
				c.Notify("notifications/progress", `{"x":1.10,"progressToken":`+string(c.Token())+`,"progress":9007199254740993,"total":1e400}`)
				c.Text("told")
			}),
		},
		Resources: []testmcp.Resource{{Definition: oddResource, Read: func(c *testmcp.Call) { c.Result(oddContents) }}},
		Templates: []string{oddTemplate},
		Prompts:   []testmcp.Prompt{{Definition: oddPrompt, Get: func(c *testmcp.Call) { c.Result(oddMessages) }}},
	}
})

// crossed gives what a client gets of a result that a server has given: in the newer era the two things that this era
// demands stand in front, and in the older one those that only the newer one knows are gone.
func crossed(result string, down, up testmcp.Era, method string) string {
	const kind = `{"resultType":"complete",`
	switch {
	case down == testmcp.Modern && up == testmcp.Modern:
		return kind + result[1:]
	case down == testmcp.Modern:
		const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"p","version":"1"},`
		return kind + strings.Replace(result[1:], `"_meta":{`, info, 1)
	case up == testmcp.Modern && method == "resources/read":
		return strings.Replace(result, `,"ttlMs":5,"cacheScope":"public"`, "", 1)
	}
	return result
}

func TestEveryByteOfDefinitionsAndResultsArrives(t *testing.T) {
	t.Parallel()
	s := startAll(t, "odd", `{"server":{"name":"p","version":"1"}}`)
	for _, e := range eras {
		for _, k := range kinds {
			t.Run(e.name+" of "+k.name, func(t *testing.T) {
				own := testmcp.Connect(t, s.Server(k.name), e.era)
				c := s.Client(e.era)
				same(t, "the tool under its own name", string(definitions(own)["exact"]), strings.TrimSpace(oddTool))
				renamed := strings.Replace(oddTool, `"name":"exact"`, `"name":"`+k.tool("exact")+`"`, 1)
				same(t, "the tool among all", string(definitions(c)[k.tool("exact")]), renamed)
				for name, client := range map[string]*testmcp.Client{"exact": own, k.tool("exact"): c} {
					got := client.CallTool(name, oddArguments).Result()
					same(t, "the result of "+name, string(got), crossed(oddResult, e.era, k.era, "tools/call"))
				}
				same(t, "the error", string(c.CallTool(k.tool("refuse"), "").Err()), oddError)
				checkPrompts(t, c, k, e.era)
				checkResources(t, own, k, e.era)
			})
		}
	}
}

func checkPrompts(t *testing.T, c *testmcp.Client, k kind, down testmcp.Era) {
	t.Helper()
	for _, p := range c.List("prompts/list", "prompts") {
		if p.At("name").Str() == k.tool("ask") {
			same(t, "the prompt", string(p), strings.Replace(oddPrompt, `"name":"ask"`, `"name":"`+k.tool("ask")+`"`, 1))
		}
	}
	got := c.Call("prompts/get", `{"name":"`+k.tool("ask")+`","arguments":{"n":"1"}}`).Result()
	same(t, "the prompt's messages", string(got), crossed(oddMessages, down, k.era, "prompts/get"))
}

func checkResources(t *testing.T, c *testmcp.Client, k kind, down testmcp.Era) {
	t.Helper()
	for method, want := range map[[2]string]string{
		{"resources/list", "resources"}:                   oddResource,
		{"resources/templates/list", "resourceTemplates"}: oddTemplate,
	} {
		list := c.List(method[0], method[1])
		if len(list) != 1 {
			t.Fatalf("%s gives %d items", method[0], len(list))
		}
		same(t, method[0], string(list[0]), want)
	}
	got := c.Call("resources/read", `{"uri":"odd://one"}`).Result()
	same(t, "the contents", string(got), crossed(oddContents, down, k.era, "resources/read"))
}

func TestEveryByteOfARequestArrives(t *testing.T) {
	t.Parallel()
	s := startAll(t, "odd", "")
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			t.Run(e.name+" to "+k.name, func(t *testing.T) {
				before := s.recs[k.name].Count(testmcp.CalledTool("exact"))
				c.Call("tools/call", `{"x-unknown": 1.10 ,"name":"`+k.tool("exact")+`", "arguments":`+oddArguments+
					`,"_meta":{"example.com/n":9007199254740993, "x":`+oddNumbers+`}}`)
				params := s.recs[k.name].WaitN(t, before+1, testmcp.CalledTool("exact"))[before].Frame.At("params")
				same(t, "the arguments", string(params.At("arguments")), oddArguments)
				same(t, "an unknown member", string(params.At("x-unknown")), "1.10")
				same(t, "a number in _meta", string(params.At("_meta", "example.com/n")), "9007199254740993")
				same(t, "an object in _meta", string(params.At("_meta", "x")), oddNumbers)
			})
		}
	}
}

// A line break is white space in JSON and the end of a message on a pipe. A second message hides in the arguments here,
// on a line of its own.
func TestLineBreaksBecomeBlanksAndSmuggleNothing(t *testing.T) {
	t.Parallel()
	s := startAll(t, "odd", `{"profiles":{"all":{"servers":["pipe-old"]}}}`, `"tool_policy":{"deny":["refuse"]}`)
	args := "{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"refuse\"}}\r\n,\"b\" :\n\n[1]}"
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			rec := s.recs[k.name]
			before := rec.Count(testmcp.CalledTool("exact"))
			c.CallTool(k.tool("exact"), args)
			got := rec.WaitN(t, before+1, testmcp.CalledTool("exact"))[before].Frame.At("params", "arguments")
			same(t, e.name+" to "+k.name, string(got), strings.NewReplacer("\n", " ", "\r", " ").Replace(args))
			if n := rec.Count(testmcp.CalledTool("refuse")); n != 0 {
				t.Errorf("%s got %d calls of a denied tool", k.name, n)
			}
		}
	}
}

func TestProgressArrivesWithAllItsBytes(t *testing.T) {
	t.Parallel()
	s := startAll(t, "odd", "")
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			st := c.Start("tools/call", `{"name":"`+k.tool("tell")+`","arguments":{},"_meta":{"progressToken":"my \u0074oken"}}`)
			got := st.WaitMethod("notifications/progress")
			same(t, e.name+" of "+k.name, string(got.Params), `{"x":1.10,"progressToken":"my \u0074oken","progress":9007199254740993,"total":1e400}`)
			if text := st.Final().Text(); text != "told" {
				t.Errorf("%s answered %q", k.name, text)
			}
		}
	}
}
