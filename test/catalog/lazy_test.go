package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const exactSchema = `{"properties":{"n":{"maximum":9007199254740993,"minimum":1.10}},"type":"object"}`

var _ = behaviour("library", func() *testmcp.Server {
	s := &testmcp.Server{Tools: []testmcp.Tool{{
		Definition: `{"name":"find_book","description":"Finds a Book.","inputSchema":` + exactSchema + `,"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
		Handle:     func(c *testmcp.Call) { c.Text("found") },
	}, {
		Definition: `{"name":"lend","inputSchema":null}`,
		Handle:     func(c *testmcp.Call) { c.Text("lent") },
	}}}
	s.Tools = append(s.Tools, testmcp.SimpleTool("burn_book", func(c *testmcp.Call) { c.Text("burnt") }))
	for i := range 30 {
		s.Tools = append(s.Tools, testmcp.SimpleTool(fmt.Sprintf("shelf%02d", i), func(c *testmcp.Call) { c.Text("shelf") }))
	}
	return s
})

func startLibrary(t *testing.T) *testmcp.Proxy {
	t.Helper()
	return start(t, testmcp.Config(`{"profiles":{"few":{"servers":["lib"],"tool_policy":{"expose":["lend"]}}}}`, map[string]string{
		"lib":   testmcp.NewRecorder(t).Entry("library", nil, `"lazy":true`, `"tool_policy":{"deny":["burn_*"]}`),
		"other": testmcp.NewRecorder(t).Entry("shop", nil),
	}))
}

func TestALazyServerListsItsToolsWithoutTheirSchemas(t *testing.T) {
	t.Parallel()
	p := startLibrary(t)
	for _, e := range eras {
		c := p.Client(e.era)
		defs := definitions(c)
		book := defs["lib__find_book"]
		same(t, "the schema", string(book.At("inputSchema")), `{"type":"object","additionalProperties":true}`)
		if book.Has("outputSchema") || !book.Has("annotations") {
			t.Errorf("%s: listed as %s", e.name, book)
		}
		holds(t, "the description", book.At("description").Str(), "Finds a Book.", "lib__search_tools")
		same(t, "another server's schema", string(defs["other__ab"].At("inputSchema")), `{"type":"object"}`)
		names := slices.DeleteFunc(c.ToolNames(), func(n string) bool { return !strings.HasPrefix(n, "lib__") })
		if last := names[len(names)-1]; last != "lib__search_tools" {
			t.Errorf("%s: the last tool is %s", e.name, last)
		}
		if text := c.CallTool("lib__find_book", `{"n":1}`).Text(); text != "found" {
			t.Errorf("%s: a call gave %q", e.name, text)
		}
	}
}

func TestTheSearchToolFindsFullSchemas(t *testing.T) {
	t.Parallel()
	p := startLibrary(t)
	search := func(c *testmcp.Client, query string) testmcp.Raw {
		t.Helper()
		a := c.CallTool("lib__search_tools", `{"query":`+testmcp.Quote(query)+`}`)
		got := a.Result().At("structuredContent")
		same(t, "the text beside the structured content", a.Text(), string(got))
		return got
	}
	for _, e := range eras {
		c := p.Client(e.era)
		found := search(c, "BOOK")
		if n := len(found.At("tools").Items()); n != 1 || found.At("total_matches").Int() != 1 || found.Has("truncated") {
			t.Errorf("%s: found %s", e.name, found)
		}
		same(t, "the name", found.At("tools", 0, "name").Str(), "lib__find_book")
		same(t, "the schema", string(found.At("tools", 0, "input_schema")), exactSchema)
		same(t, "a repaired schema", string(search(c, "lend").At("tools", 0, "input_schema")), `{"type":"object"}`)
		if many := search(c, "shelf"); len(many.At("tools").Items()) != 20 || many.At("total_matches").Int() != 30 || string(many.At("truncated")) != "true" {
			t.Errorf("%s: %d of %s found", e.name, len(many.At("tools").Items()), many.At("total_matches"))
		}
		for _, hidden := range []string{"burn", "nothing at all", "other__ab"} {
			same(t, "what is found for "+hidden, string(search(c, hidden)), `{"tools":[],"total_matches":0}`)
		}
		few := testmcp.Connect(t, p.Profile("few"), e.era)
		same(t, "what a profile finds of what it hides", string(search(few, "book")), `{"tools":[],"total_matches":0}`)
		for _, bad := range []string{`{}`, `{"query":""}`, `{"query":7}`, `{"Query":"x"}`} {
			if a := c.CallTool("lib__search_tools", bad); a.Code() != -32602 {
				t.Errorf("%s: a search with %s gave %s", e.name, bad, a.Raw)
			}
		}
	}
}

// At the address of the one server, its tools are listed as they are.
func TestALazyServersOwnAddressListsFullSchemas(t *testing.T) {
	t.Parallel()
	p := startLibrary(t)
	for _, e := range eras {
		defs := definitions(testmcp.Connect(t, p.Server("lib"), e.era))
		same(t, "the schema", string(defs["find_book"].At("inputSchema")), exactSchema)
		if defs["search_tools"] != nil || defs["burn_book"] != nil {
			t.Errorf("%s: more is listed than the server has or shows", e.name)
		}
	}
}

// A server's own tool of the name of ours is a duplicate like any other, and ours can be called differently.
func TestAServerWithASearchToolOfItsOwn(t *testing.T) {
	t.Parallel()
	server := named{id: "a", tools: []string{"search_tools", "get"}}
	check := func(settings string) testmcp.Ran {
		return run(t, map[string]string{"mcp.json": config(t, settings, server)}, nil, "check", "--connect", "--config", "mcp.json")
	}
	for _, clash := range []string{
		`{"naming":{"mode":"none"},"lazy":true}`,
		`{"naming":{"on_conflict":"suffix"},"profiles":{"p":{"servers":["a"],"lazy":true,"naming":{"mode":"none","on_conflict":"fail"}}}}`,
	} {
		if ran := check(clash); ran.Code != 1 || !strings.Contains(ran.Stdout, "lazy can give another name") {
			t.Errorf("%s: %+v", clash, ran)
		}
		ran := run(t, map[string]string{"mcp.json": config(t, clash, server)}, nil, "serve", "--config", "mcp.json", "--listen", "127.0.0.1:0")
		if ran.Code != 1 || !strings.Contains(ran.Stderr, "search_tools") {
			t.Errorf("%s: serve exits with %d", clash, ran.Code)
		}
	}
	ran := check(`{"naming":{"mode":"none"},"lazy":{"tool_name":"find_tools"}}`)
	if ran.Code != 0 {
		t.Errorf("with another name: %+v", ran)
	}
	holds(t, "the table", strings.Join(strings.Fields(ran.Stdout), " "), "find_tools 10 tool read_only a", "search_tools 12 tool side_effect a", "get 3 tool side_effect a")
}

func TestTheTableTellsWhatFitsNothing(t *testing.T) {
	t.Parallel()
	text := config(t, "", named{id: "a", tools: []string{"get"}, more: []string{`"tool_policy":{"deny":["delet_*"]}`, `"tools":{"git":{"title":"G"}}`}})
	for flag, code := range map[string]int{"--strict": 1, "--connect": 0} {
		ran := run(t, map[string]string{"mcp.json": text}, nil, "check", "--connect", flag, "--config", "mcp.json")
		if ran.Code != code {
			t.Errorf("%s: %+v", flag, ran)
		}
		holds(t, "what is printed", ran.Stdout, `warning: a: tool_policy.deny: nothing of the server is called "delet_*"`, `warning: a: tools: the server has no tool "git"`)
	}
	p := start(t, text)
	status, got, _ := get(t, p.Base+"/api/v1/status")
	if status != 200 || !strings.Contains(got, `"effect":"side_effect"`) || !strings.Contains(got, "nothing of the server is called") {
		t.Errorf("the status: HTTP %d %s", status, got)
	}
}
