package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// shelf is a server with resources that another has too; it signs what it reads.
func shelf(args []string) *testmcp.Server {
	name := args[0]
	s := testmcp.Basic(name)
	s.Era = testmcp.Legacy
	if slices.Contains(args, "modern") {
		s.Era = testmcp.Modern
	}
	s.Resources = []testmcp.Resource{{Definition: `{"uri":"timezone://info","name":"tz"}`}, {Definition: `{"uri":"file:///etc/motd","name":"motd"}`}}
	s.Templates = []string{`{"uriTemplate":"db://{table}","name":"table"}`}
	s.On = map[string]testmcp.Handler{
		"resources/read": func(c *testmcp.Call) {
			uri := c.Params.At("uri").Str()
			if strings.Contains(uri, "missing") {
				c.Error(-32002, "Resource not found", `{"uri":`+testmcp.Quote(uri)+`}`)
				return
			}
			c.Contents(uri, name+" has "+uri)
		},
		"completion/complete": func(c *testmcp.Call) {
			c.Result(`{"completion":{"values":[` + testmcp.Quote(name) + `,` + testmcp.Quote(c.Params.At("ref").String()) + `,` +
				testmcp.Quote(c.Params.At("context").String()) + `],"total":250,"hasMore":true,"x-more":[1]}}`)
		},
	}
	s.Tools = []testmcp.Tool{testmcp.SimpleTool("links", func(c *testmcp.Call) {
		c.Result(`{"content":[{"type":"resource_link","uri":"timezone://info","name":"tz"},{"type":"resource","resource":{"uri":"db://t","text":"t"}},` +
			`{"type":"resource_link","uri":"hidden://one","name":"h"},{"type":"text","text":"timezone://info"}]}`)
	})}
	s.Prompts = []testmcp.Prompt{{Definition: `{"name":"links"}`, Get: func(c *testmcp.Call) {
		c.Result(`{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"timezone://info","text":"t"}}}]}`)
	}}}
	return s
}

var _ = testmcp.Register("shelf", shelf)

// twoShelves starts two servers that have the same URIs, in this order.
func twoShelves(t *testing.T, more ...string) *testmcp.Proxy {
	t.Helper()
	a, b := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
	h := testmcp.ServeHTTP(t, shelf(append([]string{"b"}, more...)), testmcp.HTTPOptions{Recorder: b})
	return start(t, testmcp.Config("", map[string]string{"a": a.Entry("shelf", append([]string{"a"}, more...)), "b": h.Entry()}))
}

// Two servers with the same URIs: both can be read, each by its own, and a URI means the same wherever it stands.
func TestTheSameURIInTwoServers(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"modern"}} {
		p := twoShelves(t, more...)
		for _, e := range eras {
			c := p.Client(e.era)
			var uris, templates []string
			for _, r := range c.List("resources/list", "resources") {
				uris = append(uris, r.At("uri").Str())
			}
			for _, r := range c.List("resources/templates/list", "resourceTemplates") {
				templates = append(templates, r.At("uriTemplate").Str())
			}
			equal(t, "listed", strings.Join(uris, " "), "timezone://info file:///etc/motd b+timezone://info b+file:///etc/motd")
			equal(t, "templates", strings.Join(templates, " "), "db://{table} b+db://{table}")
			for uri, want := range map[string]string{
				"timezone://info": "a has timezone://info", "b+timezone://info": "b has timezone://info", "b+file:///etc/motd": "b has file:///etc/motd",
				"db://users": "a has db://users", "b+db://users": "b has db://users", "a+db://users": "a has db://users",
			} {
				got := c.Call("resources/read", `{"uri":"`+uri+`"}`).Result().At("contents", 0)
				equal(t, uri, got.At("text").Str(), want)
				equal(t, uri+": inside the contents", got.At("uri").Str(), uri)
			}
			links := c.CallTool("b__links", "").Result()
			equal(t, "a link", links.At("content", 0, "uri").Str(), "b+timezone://info")
			equal(t, "an embedded resource", links.At("content", 1, "resource", "uri").Str(), "b+db://t")
			equal(t, "text", links.At("content", 3, "text").Str(), "timezone://info")
			prompt := c.Call("prompts/get", `{"name":"b__links"}`).Result()
			equal(t, "in a prompt", prompt.At("messages", 0, "content", "resource", "uri").Str(), "b+timezone://info")
		}
	}
}

// Links need not be listed: whoever got one can read it from where it came, and a second server's is told apart.
func TestLinksThatStandInNoList(t *testing.T) {
	t.Parallel()
	p := twoShelves(t)
	for _, e := range eras {
		c := p.Client(e.era)
		equal(t, "the first", c.CallTool("a__links", "").Result().At("content", 2, "uri").Str(), "hidden://one")
		equal(t, "the second", c.CallTool("b__links", "").Result().At("content", 2, "uri").Str(), "b+hidden://one")
		for uri, want := range map[string]string{"hidden://one": "a has hidden://one", "b+hidden://one": "b has hidden://one"} {
			equal(t, uri, c.Call("resources/read", `{"uri":"`+uri+`"}`).Result().At("contents", 0, "text").Str(), want)
		}
		one := testmcp.Connect(t, p.Server("b"), e.era)
		equal(t, "on the endpoint of one server", one.Call("resources/read", `{"uri":"hidden://two"}`).Result().At("contents", 0, "text").Str(), "b has hidden://two")
	}
}

// A resource that its owner does not have is no fault of the path, and never an empty success.
func TestResourcesThatAreMissing(t *testing.T) {
	t.Parallel()
	p := twoShelves(t)
	for era, want := range map[testmcp.Era]int{testmcp.Legacy: -32002, testmcp.Modern: -32602} {
		c := p.Client(era)
		for _, uri := range []string{"db://missing", "b+db://missing", "nowhere://at/all", "c+db://x"} {
			equal(t, uri+": code", c.Call("resources/read", `{"uri":"`+uri+`"}`).Code(), want)
		}
	}
}

// A URI belongs to the template that it follows most closely, whichever was there first.
func TestTheMostSpecificTemplateOwnsAURI(t *testing.T) {
	t.Parallel()
	serve := func(name, template string) string {
		s := shelf([]string{name})
		s.Resources, s.Templates = nil, []string{`{"uriTemplate":"` + template + `","name":"t"}`}
		return testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{}).Entry()
	}
	p := start(t, testmcp.Config("", map[string]string{"a": serve("a", "app://{x}"), "b": serve("b", "app://entities/get/{type}{?where}")}))
	for _, e := range eras {
		c := p.Client(e.era)
		for uri, want := range map[string]string{
			"app://something":                  "a has app://something",
			"app://entities/get/user":          "b has app://entities/get/user",
			"app://entities/get/user?where=x1": "b has app://entities/get/user?where=x1",
		} {
			equal(t, uri, c.Call("resources/read", `{"uri":"`+uri+`"}`).Result().At("contents", 0, "text").Str(), want)
		}
		want := map[testmcp.Era]int{testmcp.Legacy: -32002, testmcp.Modern: -32602}[e.era]
		equal(t, "a URI of no template: code", c.Call("resources/read", `{"uri":"app://entities/put/user"}`).Code(), want)
	}
}

// Completion is answered by the owner of the prompt or template, under its own names, and every byte comes back.
func TestCompletionIsAnsweredByTheOwner(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"modern"}} {
		p := twoShelves(t, more...)
		for _, e := range eras {
			c := p.Client(e.era)
			for _, q := range []struct{ ref, owner, wire string }{
				{`{"type":"ref/prompt","name":"b__links","title":"T"}`, "b", `{"type":"ref/prompt","name":"links","title":"T"}`},
				{`{"type":"ref/resource","uri":"db://{table}"}`, "a", `{"type":"ref/resource","uri":"db://{table}"}`},
				{`{"type":"ref/resource","uri":"b+db://{table}"}`, "b", `{"type":"ref/resource","uri":"db://{table}"}`},
			} {
				a := c.Call("completion/complete", `{"ref":`+q.ref+`,"argument":{"name":"n","value":"v"},"context":{"arguments":{"a":"b"}}}`).Result().At("completion")
				equal(t, q.ref+": the owner", a.At("values", 0).Str(), q.owner)
				equal(t, q.ref+": the reference", a.At("values", 1).Str(), q.wire)
				equal(t, q.ref+": the context", a.At("values", 2).Str(), `{"arguments":{"a":"b"}}`)
				equal(t, q.ref+": the rest", a.At("total").String()+a.At("hasMore").String()+a.At("x-more").String(), "250true[1]")
			}
			for _, ref := range []string{`{"type":"ref/prompt","name":"nobody"}`, `{"type":"ref/resource","uri":"nowhere://{x}"}`} {
				equal(t, ref+": code", c.Call("completion/complete", `{"ref":`+ref+`,"argument":{"name":"n","value":"v"}}`).Code(), -32602)
			}
		}
	}
}

// Whoever offers something to complete need not know how: that is an empty answer, not a failure.
func TestCompletionThatTheOwnerDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		p, _ := startOne(t, k, "knows-no-completion", "")
		for _, e := range eras {
			a := p.Client(e.era).Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+k.name+`__greet"},"argument":{"name":"who","value":""}}`)
			equal(t, k.name+", "+e.name, a.Result().At("completion", "values").String(), "[]")
		}
	}
}

var _ = behaviour("knows-no-completion", func() *testmcp.Server {
	s := testmcp.Basic("knows-no-completion")
	s.On = map[string]testmcp.Handler{"completion/complete": testmcp.Errors(-32601, "method not found")}
	return s
})

// Prompts of one name in two servers, and a tool and a prompt of one name, are all apart.
func TestPromptsOfTheSameName(t *testing.T) {
	t.Parallel()
	serve := func(name string) string {
		s := testmcp.Basic(name)
		s.Era = testmcp.Legacy
		s.Tools = []testmcp.Tool{testmcp.SimpleTool("summarize", func(c *testmcp.Call) { c.Text("tool of " + name) })}
		s.Prompts = []testmcp.Prompt{{Definition: `{"name":"summarize","arguments":[{"name":"of-` + name + `"}]}`, Get: func(c *testmcp.Call) {
			c.Result(`{"messages":[{"role":"user","content":{"type":"text","text":"prompt of ` + name + `"}}]}`)
		}}}
		return testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{}).Entry()
	}
	p := start(t, testmcp.Config("", map[string]string{"a": serve("a"), "b": serve("b")}))
	for _, e := range eras {
		c := p.Client(e.era)
		for _, name := range []string{"a", "b"} {
			equal(t, "prompt", c.Call("prompts/get", `{"name":"`+name+`__summarize"}`).Result().At("messages", 0, "content", "text").Str(), "prompt of "+name)
			equal(t, "tool", c.CallTool(name+"__summarize", "").Text(), "tool of "+name)
		}
		prompts := c.List("prompts/list", "prompts")
		equal(t, "prompts", len(prompts), 2)
		equal(t, "an argument", prompts[1].At("arguments", 0, "name").Str(), "of-b")
	}
}
