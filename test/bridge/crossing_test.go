package bridge

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The server of these tests has tools that grow, says how long what it says is fresh, and gives content of every revision.
var _ = behaviour("crossing", func() *testmcp.Server {
	s := testmcp.Basic("crossing")
	s.Tools = append(s.Tools, testmcp.SimpleTool("grow", func(c *testmcp.Call) {
		c.Instance().SetTools(append(slices.Clone(s.Tools), testmcp.SimpleTool("grown", nil))...)
		c.Instance().Notify("notifications/tools/list_changed", "")
		c.Text("grown")
	}), testmcp.SimpleTool("newer", func(c *testmcp.Call) {
		c.Result(`{"content":` + everyContent + `}`)
	}))
	s.On = map[string]testmcp.Handler{
		"prompts/list": func(c *testmcp.Call) { c.Result(`{"prompts":[{"name":"p0"}]` + fresh(c) + `}`) },
		"resources/list": func(c *testmcp.Call) {
			c.Result(`{"resources":[{"name":"r","uri":"r://0"}]` + fresh(c) + `}`)
		},
		"resources/read": func(c *testmcp.Call) { c.Result(`{"contents":[{"uri":"r://0","text":"read"}]` + fresh(c) + `}`) },
		"completion/complete": func(c *testmcp.Call) {
			c.Result(`{"completion":{"values":[` + string(c.Params.At("ref", "name")) + `,` + string(c.Params.At("argument", "value")) + `]}}`)
		},
	}
	return s
})

const (
	audio        = `{"type":"audio","data":"AA==","mimeType":"audio/wav"}`
	link         = `{"type":"resource_link","uri":"r://0","name":"r"}`
	everyContent = `[` + audio + `,` + link + `]`
)

// fresh is what modern servers say of how long a result may be kept.
func fresh(c *testmcp.Call) string {
	if c.Modern() {
		return `,"ttlMs":7000,"cacheScope":"public"`
	}
	return ""
}

// A server of either era says on whatever transport that its tools have changed. Old clients hear of it on their standing
// stream, new ones where they listen, under the id of their own request; the list is then another.
func TestChangesOfToolsAreToldToClientsOfBothEras(t *testing.T) {
	t.Parallel()
	const changed = "notifications/tools/list_changed"
	type hearer struct {
		*testmcp.Client
		news *testmcp.Stream
	}
	all, before := map[kind][]hearer{}, map[kind]int{}
	for _, k := range kinds { // each takes its time, so that none waits for another
		p, rec := startOne(t, k, "crossing", "")
		waitHeard(rec, t, k)
		old, modern := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
		listen := modern.Listen(`{"toolsListChanged":true}`)
		listen.WaitMethod("notifications/subscriptions/acknowledged")
		all[k], before[k] = []hearer{{old, old.Get("")}, {modern, listen}}, len(old.ToolNames())
		equal(t, k.name, modern.CallTool(k.name+"__grow", "").Text(), "grown")
	}
	for _, k := range kinds {
		for i, c := range all[k] {
			whose := c.news.WaitMethod(changed).Params.At("_meta", "io.modelcontextprotocol/subscriptionId")
			equal(t, k.name+", "+eras[i].name+": whose", whose.String(), []string{"", c.news.ID}[i])
			equal(t, k.name+", "+eras[i].name+": tools", len(c.ToolNames()), before[k]+1)
		}
	}
}

// Servers of every kind are asked to complete under their own names.
func TestCompletionReachesServersOfEveryKind(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "crossing", "")
	for _, e := range eras {
		c := s.Client(e.era)
		for _, k := range kinds {
			a := c.Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+k.name+`__p0"},"argument":{"name":"n","value":"v"}}`)
			equal(t, e.name+", "+k.name, a.Result().At("completion", "values").String(), `["p0","v"]`)
		}
	}
}

// What a modern server says of how long a result is fresh goes to new clients; of old servers nothing is promised, and old
// clients know no such words. A list is never for a cache that several share, as it may differ with who asks.
func TestHintsForCachesGoToThoseWhoKnowThem(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		p, _ := startOne(t, k, "crossing", "")
		for _, e := range eras {
			c := p.Client(e.era)
			for method, scopes := range map[string][]string{
				"prompts/list": {"private", "private"}, "resources/list": {"private", "private"}, "resources/read": {"private", "public"},
			} {
				got, what := c.Call(method, `{"uri":"r://0"}`).Result(), e.name+", "+k.name+", "+method
				ttl, scope := "0", scopes[0]
				switch {
				case e.era == testmcp.Legacy:
					ttl, scope = "", ""
				case k.era == testmcp.Modern:
					ttl, scope = "7000", scopes[1]
				}
				equal(t, what+": ttlMs", got.At("ttlMs").String(), ttl)
				equal(t, what+": cacheScope", got.At("cacheScope").Str(), scope)
			}
		}
	}
}

// Trace context and what others have put into _meta go with a request; the words of one era stay in it.
func TestMetaOfRequests(t *testing.T) {
	t.Parallel()
	const trace = `{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1","baggage":"b=2","example.com/more":12345678901234567890}`
	s := startAll(t, kinds, "crossing", "")
	for _, k := range kinds {
		for i, e := range eras {
			c := s.Client(e.era)
			c.CallTool(k.name+"__echo", `{"text":"x"}`)
			c.Call("tools/call", `{"name":"`+k.name+`__echo","arguments":{},"_meta":`+trace+`}`)
			meta := s.recs[k.name].WaitN(t, 2*(i+1), testmcp.CalledTool("echo"))[2*i+1].Frame.At("params", "_meta")
			for _, name := range testmcp.Raw(trace).Keys() {
				equal(t, e.name+", "+k.name+": "+name, meta.At(name).String(), testmcp.Raw(trace).At(name).String())
			}
			for _, name := range []string{"protocolVersion", "clientCapabilities", "clientInfo"} {
				equal(t, e.name+", "+k.name+": "+name, meta.Has("io.modelcontextprotocol/"+name), k.era == testmcp.Modern)
			}
		}
	}
}

// Old clients of a revision that knows no audio or no links to resources get text in their place of servers of the other
// era. Nothing is changed between peers of one era, and new clients know every kind.
func TestContentThatAClientIsTooOldFor(t *testing.T) {
	t.Parallel()
	const linkText, audioText = `{"type":"text","text":"r://0"}`, `{"type":"text","text":"[audio]"}`
	for _, k := range kinds {
		p, _ := startOne(t, k, "crossing", "")
		equal(t, "new client, "+k.name, p.Client(testmcp.Modern).CallTool(k.name+"__newer", "").Result().At("content").String(), everyContent)
		for version, want := range map[string]string{
			testmcp.Rev2024: `[` + audioText + `,` + linkText + `]`, testmcp.Rev2503: `[` + audio + `,` + linkText + `]`, testmcp.Rev2506: everyContent,
		} {
			if k.era == testmcp.Legacy {
				want = everyContent
			}
			c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
			c.Version = version
			got := c.Open().CallTool(k.name+"__newer", "").Result().At("content").String()
			equal(t, version+", "+k.name, got, want)
		}
	}
}

// What only one side has a word for goes no further: a ping is answered here, and servers that everybody shares or that are
// of the other era hear of no change of roots.
func TestWhatOnlyOneSideHasAWordFor(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "crossing", "")
	old, modern := connect(t, s.Proxy, testmcp.Legacy, nil), connect(t, s.Proxy, testmcp.Modern, nil)
	equal(t, "a ping of an old client", old.Call("ping", "").Result().String(), "{}")
	equal(t, "a ping of a new client", modern.Call("ping", "").Code(), -32601)
	old.Notify(rootsChanged, "")
	for _, k := range kinds {
		for _, c := range []*testmcp.Client{old, modern} {
			equal(t, k.name, c.CallTool(k.name+"__echo", `{"text":"x"}`).Text(), "x")
		}
		for _, method := range []string{"ping", rootsChanged} {
			equal(t, k.name+": "+method, s.recs[k.name].Count(testmcp.Received(method)), 0)
		}
	}
}

// What an extension wants of those between client and server only the extension knows: one that is not known here is
// declared to no client. What a new client declares goes with its request to a new server, and nowhere else.
func TestExtensionsThatNobodyHereKnows(t *testing.T) {
	t.Parallel()
	const extension = `"extensions":{"example.com/far":{}}`
	for _, k := range kinds {
		p, rec := startOne(t, k, "extended", "")
		for i, e := range eras {
			for _, url := range []string{p.URL, p.Server(k.name)} {
				c := testmcp.NewClient(t, url, e.era)
				c.Capabilities = "{" + extension + "}"
				said := c.Open().Opened.Result()
				if e.era == testmcp.Modern {
					said = c.Call("server/discover", "{}").Result()
				}
				equal(t, e.name+", "+k.name+": declared to the client", said.Has("capabilities", "extensions"), false)
			}
			c := client(t, p, e.era, nil)
			c.Capabilities = "{" + extension + "}"
			equal(t, e.name+", "+k.name, c.Open().CallTool(k.name+"__echo", `{"text":"x"}`).Text(), "x")
			call := rec.WaitN(t, i+1, testmcp.CalledTool("echo"))[i]
			told := strings.Contains(string(call.Frame), "example.com/far")
			equal(t, e.name+", "+k.name+": told to the server", told, e.era == testmcp.Modern && k.era == testmcp.Modern)
		}
		for _, r := range rec.Find(testmcp.Received("initialize")) {
			equal(t, k.name+": told in the handshake", r.Frame.Has("params", "capabilities", "extensions"), false)
		}
	}
}

var _ = behaviour("extended", func() *testmcp.Server {
	s := testmcp.Basic("extended")
	s.Capabilities = `{"tools":{},"extensions":{"example.com/far":{}}}`
	return s
})
