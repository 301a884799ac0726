package catalog

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// It lists tools by the names given as arguments; each call answers with the name that arrived.
var _ = testmcp.Register("named", func(args []string) *testmcp.Server {
	s := &testmcp.Server{Era: testmcp.Legacy}
	for _, name := range args {
		s.Tools = append(s.Tools, testmcp.SimpleTool(name, func(c *testmcp.Call) { c.Text("<" + c.Params.At("name").Str() + ">") }))
		s.Prompts = append(s.Prompts, testmcp.Prompt{Definition: `{"name":` + testmcp.Quote(name) + `}`})
	}
	return s
})

// named is a server under an id with tools of these names.
type named struct {
	id    string
	tools []string
	more  []string
}

func config(t *testing.T, settings string, servers ...named) string {
	t.Helper()
	entries := map[string]string{}
	for _, s := range servers {
		entries[s.id] = testmcp.NewRecorder(t).Entry("named", s.tools, s.more...)
	}
	return testmcp.Config(settings, entries)
}

// offered gives the exposed names of a client by server and wire name, as the calls prove them.
func offered(t *testing.T, c *testmcp.Client) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range c.ToolNames() {
		if _, twice := out[name]; twice {
			t.Errorf("%q is offered twice", name)
		}
		text := c.CallTool(name, "").Text()
		out[name] = strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
	}
	return out
}

var acceptable = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestLongNamesAreShortenedTheSameWayEachTime(t *testing.T) {
	t.Parallel()
	const id = "awslabs-billing-cost-management-mcp-server"
	const forty = "get_reservation_purchase_recommendations"
	common := strings.Repeat("x", 60)
	tools := []string{forty, common + "_one", common + "_two", "short"}
	p := start(t, config(t, "", named{id: id, tools: tools}))
	before := offered(t, p.Client(testmcp.Legacy))
	var got []string
	for name, wire := range before {
		if len(name) > 50 || !acceptable.MatchString(name) {
			t.Errorf("%q has %d characters, or some that clients refuse", name, len(name))
		}
		got = append(got, wire)
	}
	slices.Sort(tools)
	slices.Sort(got)
	if !slices.Equal(got, tools) {
		t.Errorf("the calls reached %q, want %q", got, tools)
	}
	for name, def := range definitions(p.Client(testmcp.Modern)) {
		if wire := before[name]; wire != "short" && def.At("title").Str() != wire {
			t.Errorf("the original name of %s is told nowhere: %s", name, def)
		}
	}
	// Another server, earlier in order and with tools of the same names, changes nothing.
	p.WriteConfig(config(t, "", named{id: id, tools: tools}, named{id: "aaa", tools: tools}))
	p.Restart()
	after := offered(t, p.Client(testmcp.Legacy))
	for name, wire := range before {
		if after[name] != wire {
			t.Errorf("%q called %q before and %q after the restart", name, wire, after[name])
		}
	}
	if len(after) != 2*len(tools) {
		t.Errorf("%d tools are offered, want %d", len(after), 2*len(tools))
	}
}

func TestNamesWithOddCharactersBecomeAcceptableAndStayApart(t *testing.T) {
	t.Parallel()
	tools := []string{"drive.files/list", "drive_files_list", "drive.files.list", "ns:do it", "ns_do_it", "naïve", "naive", "天气", "新闻", "🎈", "a\tb", "-", "_"}
	// Names that look alike once they are mended, on both sides of the separator.
	p := start(t, config(t, "", named{id: "Azure MCP Server", tools: tools}, named{id: "Azure.MCP.Server", tools: tools}))
	for _, e := range eras {
		got := offered(t, p.Client(e.era))
		if len(got) != 2*len(tools) {
			t.Errorf("%s: %d tools are offered, want %d", e.name, len(got), 2*len(tools))
		}
		reached := map[string]int{}
		for name, wire := range got {
			reached[wire]++
			if !acceptable.MatchString(name) {
				t.Errorf("%s: %q has characters that clients refuse", e.name, name)
			}
		}
		for _, wire := range tools {
			if reached[wire] != 2 {
				t.Errorf("%s: %q was reached by %d names, want 2", e.name, wire, reached[wire])
			}
		}
	}
	for _, prompt := range p.Client(testmcp.Legacy).List("prompts/list", "prompts") {
		if name := prompt.At("name").Str(); !acceptable.MatchString(name) {
			t.Errorf("the prompt %q has characters that clients refuse", name)
		}
	}
}

func TestAToolWithoutANameCostsNoOther(t *testing.T) {
	t.Parallel()
	p := start(t, config(t, "", named{id: "one", tools: []string{"", "a", "a", "b"}}))
	for _, e := range eras {
		if got := p.Client(e.era).ToolNames(); !slices.Equal(got, []string{"one__a", "one__b"}) {
			t.Errorf("%s: %q are offered", e.name, got)
		}
	}
}

func TestServerNamesThatLeaveNothingUsableAreRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"天气", "🎈 🎈", "", " ", "..", "/"} {
		ran := run(t, map[string]string{"mcp.json": config(t, "", named{id: id})}, nil, "check", "--config", "mcp.json")
		if ran.Code != 1 || !strings.Contains(ran.Stdout, "mcpServers") {
			t.Errorf("a server called %q: exit code %d\n%s", id, ran.Code, ran.Stdout)
		}
	}
}

func TestNamesAreLookedUpAndNeverSplit(t *testing.T) {
	t.Parallel()
	odd := []string{"get-catalog-entity", "a__b", "__", "a-b_c", "_x"}
	p := start(t, config(t, "",
		named{id: "evil_", tools: odd}, named{id: "a", tools: odd}, named{id: "get", tools: append(slices.Clone(odd), "catalog-entity")},
		named{id: "bare", tools: []string{"get-catalog-entity", "a__c", "get__nothing"}, more: []string{`"tool_prefix":""`}},
	))
	for _, e := range eras {
		got := offered(t, p.Client(e.era))
		if want := 3*len(odd) + 1 + 3; len(got) != want {
			t.Errorf("%s: %d tools are offered, want %d", e.name, len(got), want)
		}
		for name, wire := range map[string]string{
			"get__get-catalog-entity": "get-catalog-entity", "get-catalog-entity": "get-catalog-entity", "get__catalog-entity": "catalog-entity",
			"a__a__b": "a__b", "a____": "__", "evil____": "", "evil_____": "__", "evil____x": "_x", "a__c": "a__c", "get__nothing": "get__nothing",
		} {
			if got[name] != wire {
				t.Errorf("%s: %s calls %q, want %q", e.name, name, got[name], wire)
			}
		}
	}
}

// sameNames are two servers whose tools have one exposed name.
func sameNames(t *testing.T, policy string) string {
	return config(t, `{"naming":{"on_conflict":"`+policy+`"}}`, named{id: "a", tools: []string{"b__c", "x"}}, named{id: "a__b", tools: []string{"c", "y"}})
}

func TestAClashOfNamesIsSettledAsConfigured(t *testing.T) {
	t.Parallel()
	t.Run("suffix", func(t *testing.T) {
		p := start(t, sameNames(t, "suffix"))
		before := offered(t, p.Client(testmcp.Legacy))
		if len(before) != 4 || before["a__b__c"] != "b__c" {
			t.Errorf("offered: %v", before)
		}
		p.Restart()
		for name, wire := range offered(t, p.Client(testmcp.Modern)) {
			if before[name] != wire {
				t.Errorf("%s called %q before and %q after the restart", name, before[name], wire)
			}
		}
	})
	t.Run("skip", func(t *testing.T) {
		p := start(t, sameNames(t, "skip"))
		got := offered(t, p.Client(testmcp.Legacy))
		if len(got) != 3 || got["a__b__c"] != "b__c" {
			t.Errorf("offered: %v", got)
		}
		// Under its own name the tool is there.
		if text := testmcp.Connect(t, p.Server("a__b"), testmcp.Legacy).CallTool("c", "").Text(); text != "<c>" {
			t.Errorf("the tool that is left out among all gave %q at its own server's address", text)
		}
	})
	t.Run("fail", func(t *testing.T) {
		ran := run(t, map[string]string{"mcp.json": sameNames(t, "fail")}, nil, "serve", "--config", "mcp.json", "--listen", "127.0.0.1:0")
		if ran.Code != 1 {
			t.Errorf("exit code %d, want 1", ran.Code)
		}
		holds(t, "the log", ran.Stderr, `a__b__c`, `"upstream":"a__b"`)
		ran = run(t, map[string]string{"mcp.json": sameNames(t, "fail")}, nil, "check", "--connect", "--config", "mcp.json")
		if ran.Code != 1 {
			t.Errorf("check: exit code %d, want 1", ran.Code)
		}
		holds(t, "the table", ran.Stdout, "a__b__c", "conflict")
	})
}

func TestNamingModes(t *testing.T) {
	t.Parallel()
	servers := []named{{id: "a", tools: []string{"both", "mine"}}, {id: "b", tools: []string{"both", "yours"}},
		{id: "c", tools: []string{"both"}, more: []string{`"tool_prefix":"see-"`}}}
	tests := []struct {
		naming string
		want   []string
	}{
		{`{}`, []string{"a__both", "a__mine", "b__both", "b__yours", "see-both"}},
		{`{"mode":"on_conflict"}`, []string{"a__both", "mine", "b__both", "yours", "see-both"}},
		{`{"mode":"none","on_conflict":"skip"}`, []string{"both", "mine", "yours", "see-both"}},
		{`{"template":"{tool}-at-{server}"}`, []string{"both-at-a", "mine-at-a", "both-at-b", "yours-at-b", "see-both"}},
	}
	for _, tt := range tests {
		t.Run(tt.naming, func(t *testing.T) {
			t.Parallel()
			p := start(t, config(t, `{"naming":`+tt.naming+`}`, servers...))
			c := p.Client(testmcp.Modern)
			if got := c.ToolNames(); !slices.Equal(got, tt.want) {
				t.Errorf("offered: %q\n    want: %q", got, tt.want)
			}
			for name, wire := range offered(t, c) {
				if !strings.Contains(name, wire) {
					t.Errorf("%s calls %q", name, wire)
				}
			}
		})
	}
}
