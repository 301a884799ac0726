package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = behaviour("shop", func() *testmcp.Server {
	s := &testmcp.Server{}
	for _, name := range []string{"get_item", "get_price", "get_secret", "set_item", "Get_item", "delete_item", "a.b", "ab"} {
		s.Tools = append(s.Tools, testmcp.SimpleTool(name, func(c *testmcp.Call) { c.Text(name) }))
	}
	s.Prompts = []testmcp.Prompt{{Definition: `{"name":"get_item"}`}}
	s.Resources = []testmcp.Resource{{Definition: `{"uri":"shop://item","name":"item"}`}}
	return s
})

func TestPoliciesChooseToolsByTheirOwnNames(t *testing.T) {
	t.Parallel()
	all := []string{"get_item", "get_price", "get_secret", "set_item", "Get_item", "delete_item", "a.b", "ab"}
	tests := []struct {
		name, policy string
		want         []string
	}{
		{"nothing is said", `{}`, all},
		{"an empty list exposes all", `{"expose":[]}`, all},
		{"deny wins", `{"expose":["get_*"],"deny":["*secret*"]}`, []string{"get_item", "get_price"}},
		{"deny alone", `{"deny":["*_item"]}`, []string{"get_price", "get_secret", "a.b", "ab"}},
		{"exact names", `{"expose":["ab","set_item","nothing"]}`, []string{"set_item", "ab"}},
		{"a dot is a dot", `{"expose":["a.b"]}`, []string{"a.b"}},
		{"all are denied", `{"expose":["*"],"deny":["*"]}`, []string{}},
		{"two stars", `{"expose":["*e*t*"]}`, []string{"get_item", "get_price", "get_secret", "set_item", "Get_item", "delete_item"}},
		{"the exposed name is another", `{"expose":["one__ab"]}`, []string{}},
	}
	servers := map[string]string{}
	for i, tt := range tests {
		servers[fmt.Sprint("s", i)] = testmcp.NewRecorder(t).Entry("shop", nil, `"tool_policy":`+tt.policy)
	}
	p := start(t, testmcp.Config("", servers))
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := testmcp.Connect(t, p.Server(fmt.Sprint("s", i)), testmcp.Legacy)
			if got := append([]string{}, c.ToolNames()...); !slices.Equal(got, tt.want) {
				t.Errorf("%s offers %q, want %q", tt.policy, got, tt.want)
			}
			for _, name := range all {
				got := c.CallTool(name, "")
				if offered := slices.Contains(tt.want, name); offered != (got.Text() == name) || offered != (got.Err() == nil) {
					t.Errorf("%s: a call of %s gave %s", tt.policy, name, got.Raw)
				}
			}
		})
	}
}

// hiding are the addresses at which some of the shop is hidden: by the server's policy, by a profile's, by not being in
// the profile at all, and at another server's own address.
var hiding = []struct{ name, path, hidden string }{
	{"everything", "/mcp", "one__delete_item"},
	{"everything, the name it has there", "/mcp", "delete_item"},
	{"one server", "/servers/one/mcp", "delete_item"},
	{"another server", "/servers/two/mcp", "get_price"},
	{"a profile by its policy", "/profiles/readers/mcp", "one__set_item"},
	{"a profile by its servers", "/profiles/readers/mcp", "two__ab"},
}

func startHiding(t *testing.T) *testmcp.Proxy {
	t.Helper()
	return start(t, testmcp.Config(`{"profiles":{"readers":{"servers":["one"],"tool_policy":{"expose":["get_*"]}},"none":{"servers":["two"],"tool_policy":{"deny":["*"]}}}}`,
		map[string]string{
			"one": testmcp.NewRecorder(t).Entry("shop", nil, `"tool_policy":{"deny":["delete_*"]}`),
			"two": testmcp.NewRecorder(t).Entry("shop", nil, `"tool_policy":{"expose":["ab"]}`),
		}))
}

// visible gives all of an answer that a client can see, without what names the thing and the moment.
func visible(a testmcp.Answer, name string) string {
	body := strings.ReplaceAll(string(a.Raw), testmcp.Quote(name)[1:len(testmcp.Quote(name))-1], "NAME")
	body = strings.Replace(body, `"id":`+string(a.ID), `"id":ID`, 1)
	var head []string
	for key, values := range a.Header {
		if key != "Date" && key != "Content-Length" && key != "X-Request-Id" {
			head = append(head, key+": "+strings.Join(values, ","))
		}
	}
	slices.Sort(head)
	return fmt.Sprintf("HTTP %d\n%s\n%s", a.Status, strings.Join(head, "\n"), body)
}

func TestWhatIsHiddenIsAnsweredLikeWhatNeverWas(t *testing.T) {
	t.Parallel()
	p := startHiding(t)
	for _, e := range eras {
		for _, tt := range hiding {
			t.Run(e.name+" "+tt.name, func(t *testing.T) {
				c := testmcp.Connect(t, p.Base+tt.path, e.era)
				for _, tool := range definitions(c) {
					if tool.At("name").Str() == tt.hidden {
						t.Errorf("it is listed: %s", tool)
					}
				}
				const absent = "nothing_of_that_name"
				hidden, never := c.CallTool(tt.hidden, "{}"), c.CallTool(absent, "{}")
				same(t, "the answer to a call", visible(hidden, tt.hidden), visible(never, absent))
				if hidden.Code() != -32602 {
					t.Errorf("the code is %d: %s", hidden.Code(), hidden.Raw)
				}
				// Arguments that could only be judged by somebody who knows the tool change nothing.
				odd := `{"query":1,"deep":[{}]}`
				same(t, "the answer to a call with arguments", visible(c.CallTool(tt.hidden, odd), tt.hidden), visible(c.CallTool(absent, odd), absent))
			})
		}
	}
}

func TestProfilesOfferTheirServersAndTheirTools(t *testing.T) {
	t.Parallel()
	p := startHiding(t)
	for _, e := range eras {
		readers, none := testmcp.Connect(t, p.Profile("readers"), e.era), testmcp.Connect(t, p.Profile("none"), e.era)
		if got, want := readers.ToolNames(), []string{"one__get_item", "one__get_price", "one__get_secret"}; !slices.Equal(got, want) {
			t.Errorf("%s: readers get %q, want %q", e.name, got, want)
		}
		if text := readers.CallTool("one__get_price", "").Text(); text != "get_price" {
			t.Errorf("%s: a reader's call gave %q", e.name, text)
		}
		if got := none.ToolNames(); len(got) != 0 {
			t.Errorf("%s: a profile that denies all offers %q", e.name, got)
		}
		for _, tt := range []struct {
			c    *testmcp.Client
			want string
		}{{readers, "one__get_item"}, {none, "two__get_item"}} {
			if prompts := tt.c.List("prompts/list", "prompts"); len(prompts) != 1 || prompts[0].At("name").Str() != tt.want {
				t.Errorf("%s: the prompts are %s, want %s alone", e.name, prompts, tt.want)
			}
		}
	}
	for _, path := range []string{"/profiles/nobody/mcp", "/servers/nobody/mcp", "/profiles/one/mcp", "/servers/readers/mcp"} {
		if a := testmcp.NewClient(t, p.Base+path, testmcp.Modern).Try("tools/list", "{}"); a.Status != 404 {
			t.Errorf("%s answers HTTP %d", path, a.Status)
		}
	}
}

// A hidden resource or prompt does not exist here, but what is absent must be told in the words of each era.
func TestUnknownPromptsAndResourcesAreRefusedInTheWordsOfTheEra(t *testing.T) {
	t.Parallel()
	p := startHiding(t)
	for _, e := range eras {
		c := testmcp.Connect(t, p.Profile("readers"), e.era)
		gone := map[testmcp.Era]int{testmcp.Legacy: -32002, testmcp.Modern: -32602}[e.era]
		for _, tt := range []struct {
			method, params string
			code           int
		}{
			{"prompts/get", `{"name":"two__get_item"}`, -32602},
			{"prompts/get", `{"name":"nothing"}`, -32602},
			{"resources/read", `{"uri":"shop://nothing"}`, gone},
			{"tools/call", `{"name":7}`, -32602},
			{"tools/call", `{}`, -32602},
			{"tools/call", `{"name":"one__get_item","arguments":[]}`, -32602},
		} {
			if a := c.Call(tt.method, tt.params); a.Code() != tt.code {
				t.Errorf("%s: %s %s is answered %s, want code %d", e.name, tt.method, tt.params, a.Raw, tt.code)
			}
		}
	}
}
