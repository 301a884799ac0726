package catalog

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = behaviour("vault", func() *testmcp.Server {
	return &testmcp.Server{
		Tools: []testmcp.Tool{
			{Definition: `{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, Handle: func(c *testmcp.Call) {
				c.Result(`{"content":[{"type":"resource_link","uri":"vault://gold/bar","name":"gold"},{"type":"resource_link","uri":"vault://silver/spoon","name":"silver"}]}`)
			}},
			testmcp.SimpleTool("burn", func(c *testmcp.Call) { c.Text("burnt") }),
			testmcp.SimpleTool("melt", func(c *testmcp.Call) { c.Text("molten") }),
		},
		Resources: []testmcp.Resource{{Definition: `{"uri":"vault://gold","name":"gold"}`}, {Definition: `{"uri":"vault://silver","name":"silver"}`}},
		Templates: []string{`{"uriTemplate":"vault://{+thing}","name":"thing"}`},
		Prompts:   []testmcp.Prompt{{Definition: `{"name":"steal"}`}, {Definition: `{"name":"admire"}`}},
	}
})

// Nothing that a client can say leads to what a policy hides: no list, search, call, call through call_tool, call without
// the protocol, address of the one server, link, read, subscription or completion.
func TestNoWayLeadsToWhatAPolicyHides(t *testing.T) {
	t.Parallel()
	const policies = `"tool_policy":{"deny":["burn"],"effects":["read_only"]},"resource_policy":{"deny":["vault://gold*"]},"prompt_policy":{"deny":["steal"]}`
	for _, where := range []struct {
		name, settings, entry string
		ways                  [][2]string // the path, and the profile that it is of
	}{
		{"of the server", `{"naming":{"mode":"none"},"profiles":{"lazy":{"servers":["one"],"lazy":"search_only"}}}`, policies,
			[][2]string{{"/mcp", ""}, {"/servers/one/mcp", ""}, {"/profiles/lazy/mcp", "lazy"}}},
		{"of the profile", `{"naming":{"mode":"none"},"profiles":{"few":{"servers":["one"],"lazy":"search_only",` + policies + `}}}`, `"disabled":false`,
			[][2]string{{"/profiles/few/mcp", "few"}}},
	} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(where.name+", "+era, func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				p := start(t, testmcp.Config(where.settings, map[string]string{"one": rec.Entry("vault", []string{era}, where.entry)}))
				for _, way := range where.ways {
					for _, e := range eras {
						walk(t, p, testmcp.Connect(t, p.Base+way[0], e.era), way[1])
					}
				}
				for _, m := range rec.All() {
					switch m.Method {
					case "tools/call", "resources/read", "prompts/get", "resources/subscribe", "completion/complete":
						for _, hidden := range []string{"burn", "melt", "gold", "steal"} {
							if strings.Contains(strings.ToLower(string(m.Frame)), hidden) && m.Kind == testmcp.In {
								t.Errorf("the server saw %s", m.Frame)
							}
						}
					}
				}
			})
		}
	}
}

func walk(t *testing.T, p *testmcp.Proxy, c *testmcp.Client, profile string) {
	t.Helper()
	for method, member := range map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
		for _, item := range c.List(method, member) {
			switch item.At("name").Str() {
			case "burn", "melt", "steal", "gold":
				t.Errorf("%s lists %s", method, item)
			}
		}
	}
	if links := c.CallTool("look", `{}`); !strings.Contains(string(links.Raw), "gold/bar") {
		t.Errorf("no link came: %s", links.Raw)
	}
	for _, name := range []string{"burn", "melt"} {
		answers := []testmcp.Answer{c.CallTool(name, `{}`)}
		if profile != "" {
			answers = append(answers, c.CallTool("call_tool", `{"name":"`+name+`"}`))
			found := c.CallTool("search_tools", `{"query":"`+name+`"}`).Result()
			if found.At("structuredContent", "total_matches").Int() != 0 {
				t.Errorf("a search for %s finds %s", name, found)
			}
			if status, got, _ := post(t, p.Base+"/api/v1/tools/"+name+"/call?profile="+profile, `{}`); status != 404 || !strings.Contains(got, "unknown tool") {
				t.Errorf("a call of %s without the protocol: HTTP %d %s", name, status, got)
			}
		}
		for _, a := range answers {
			if a.Code() != -32602 || !strings.Contains(string(a.Raw), "unknown tool: "+name) {
				t.Errorf("a call of %s gives %s", name, a.Raw)
			}
		}
	}
	for _, uri := range []string{"vault://gold", "vault://gold/bar", "VAULT://gold/bar", "vault://GOLD/bar", "vault://gold/x/../bar"} {
		a := c.Try("resources/read", `{"uri":"`+uri+`"}`)
		if a.Err() == nil || !strings.Contains(string(a.Raw), "unknown resource") {
			t.Errorf("reading %s gives %s", uri, a.Raw)
		}
		if c.Era == testmcp.Legacy {
			if a := c.Try("resources/subscribe", `{"uri":"`+uri+`"}`); a.Err() == nil {
				t.Errorf("watching %s gives %s", uri, a.Raw)
			}
		}
		if a := c.Try("completion/complete", `{"ref":{"type":"ref/resource","uri":"`+uri+`"},"argument":{"name":"thing","value":"g"}}`); a.Err() == nil {
			t.Errorf("completing %s gives %s", uri, a.Raw)
		}
	}
	if a := c.Try("resources/read", `{"uri":"vault://silver"}`); a.Err() != nil {
		t.Errorf("what is not hidden: %s", a.Raw)
	}
	for _, a := range []testmcp.Answer{c.Try("prompts/get", `{"name":"`+`steal"}`),
		c.Try("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+`steal"},"argument":{"name":"x","value":""}}`)} {
		if a.Code() != -32602 {
			t.Errorf("a hidden prompt gives %s", a.Raw)
		}
	}
}
