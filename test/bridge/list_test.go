package bridge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// listers are the four lists, each with a server's items.
var listers = []struct{ method, member, id string }{
	{"tools/list", "tools", "name"}, {"prompts/list", "prompts", "name"},
	{"resources/list", "resources", "uri"}, {"resources/templates/list", "resourceTemplates", "uriTemplate"},
}

const many = 1050

// plenty is a server with more than fits into one page of each list.
var _ = behaviour("plenty", func() *testmcp.Server {
	s := testmcp.Basic("plenty")
	s.PageSize = 400
	s.Tools = testmcp.SimpleTools("t", many)
	s.Prompts, s.Resources, s.Templates = nil, nil, nil
	for i := range many {
		s.Prompts = append(s.Prompts, testmcp.Prompt{Definition: fmt.Sprintf(`{"name":"p%04d"}`, i+1)})
		s.Resources = append(s.Resources, testmcp.Resource{Definition: fmt.Sprintf(`{"uri":"r://%04d","name":"r"}`, i+1)})
		s.Templates = append(s.Templates, fmt.Sprintf(`{"uriTemplate":"t%04d://{x}","name":"t"}`, i+1))
	}
	return s
})

// Long lists come in pages, all of them, in the order of the server, for every kind of item and both eras.
func TestLongListsComeWholeInPages(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		p, rec := startOne(t, k, "plenty", `{"naming":{"mode":"none"}}`)
		seen := rec.Count(testmcp.Is(testmcp.In))
		for _, e := range eras {
			c := p.Client(e.era)
			for _, l := range listers {
				items := c.List(l.method, l.member)
				var names []string
				for _, it := range items {
					names = append(names, it.At(l.id).Str())
				}
				equal(t, k.name+", "+e.name+", "+l.method, len(names), many)
				if !slices.IsSorted(names) || len(slices.Compact(names)) != many {
					t.Errorf("%s, %s, %s: out of order, or twice", k.name, e.name, l.method)
				}
			}
		}
		equal(t, k.name+": messages to the server for it", rec.Count(testmcp.Is(testmcp.In))-seen, 0)
	}
}

// A cursor is good for the list, the endpoint, the era and the principal that it was given to, and for nothing else.
func TestCursorsBelongToWhoGotThem(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, webOld, "plenty", `{"auth":{"mode":"tokens","tokens":[{"name":"ann","token":"token-of-ann"},{"name":"bob","token":"token-of-bob"}]}}`)
	as := func(who, path string, era testmcp.Era) *testmcp.Client {
		c := testmcp.NewClient(t, p.Base+path, era)
		c.Header.Set("Authorization", "Bearer token-of-"+who)
		return c.Open()
	}
	next := func(c *testmcp.Client, method, cursor string) testmcp.Answer {
		return c.Call(method, `{"cursor":`+cursor+`}`)
	}
	for _, e := range eras {
		ann := as("ann", "/mcp", e.era)
		cursor := ann.Call("tools/list", "{}").Result().At("nextCursor")
		flipped := slices.Clone(cursor)
		flipped[3] ^= 1
		other := testmcp.Legacy
		if e.era == testmcp.Legacy {
			other = testmcp.Modern
		}
		for what, a := range map[string]testmcp.Answer{
			"another list":      next(ann, "prompts/list", cursor.String()),
			"another principal": next(as("bob", "/mcp", e.era), "tools/list", cursor.String()),
			"another endpoint":  next(as("ann", "/servers/web-old/mcp", e.era), "tools/list", cursor.String()),
			"another era":       next(as("ann", "/mcp", other), "tools/list", cursor.String()),
			"a changed cursor":  next(ann, "tools/list", string(flipped)),
			"an empty cursor":   next(ann, "tools/list", `""`),
			"no text":           next(ann, "tools/list", `7`),
		} {
			equal(t, e.name+", "+what+": code", a.Code(), -32602)
		}
		equal(t, e.name+": its own", next(ann, "tools/list", cursor.String()).Result().At("tools", 0, "name").Str(), "web-old__t1001")
		equal(t, e.name+": its own again", len(next(as("ann", "/mcp", e.era), "tools/list", cursor.String()).Result().At("tools").Items()), many-1000)
	}
}

// Whoever is in the middle of a list reads on in it, whatever changes meanwhile: nothing is missed, nothing comes twice.
func TestAListThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	s := testmcp.Basic("changing")
	s.Era = testmcp.Legacy
	s.Tools = testmcp.SimpleTools("t", 1500)
	h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"web": h.Entry()}))
	c := p.Client(testmcp.Modern)
	first := c.Call("tools/list", "{}").Result()
	h.Instance().SetTools(testmcp.SimpleTools("u", 3)...)
	h.Instance().Notify("notifications/tools/list_changed", "")
	testmcp.Eventually(t, "the new list", func() bool { return len(c.ToolNames()) == 3 })
	rest := c.Call("tools/list", `{"cursor":`+first.At("nextCursor").String()+`}`).Result()
	equal(t, "the rest", len(rest.At("tools").Items()), 500)
	equal(t, "its first", rest.At("tools", 0, "name").Str(), "web__t1001")
	equal(t, "more", rest.Has("nextCursor"), false)
}

// The order of servers is that of the configuration, whoever is up first.
func TestListsAreInTheOrderOfTheConfiguration(t *testing.T) {
	t.Parallel()
	slow := testmcp.Basic("slow")
	slow.Era, slow.Tools = testmcp.Legacy, testmcp.SimpleTools("z", 2)
	slow.On = map[string]testmcp.Handler{"tools/list": testmcp.After("now", nil)}
	quick := testmcp.Basic("quick")
	quick.Tools = testmcp.SimpleTools("a", 2)
	first, second := testmcp.ServeHTTP(t, slow, testmcp.HTTPOptions{}), testmcp.ServeHTTP(t, quick, testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"aa": first.Entry(), "bb": second.Entry()}), testmcp.WithoutReady())
	testmcp.Eventually(t, "listing of the quick one", func() bool { return p.Metrics().Sum("mcp_proxy_catalog_items", "upstream", "bb", "kind", "tool") == 2 })
	first.Rec.Signal("now")
	c := p.Client(testmcp.Legacy)
	testmcp.Eventually(t, "all tools", func() bool { return len(c.ToolNames()) == 4 })
	equal(t, "the order", strings.Join(c.ToolNames(), " "), "aa__z0001 aa__z0002 bb__a0001 bb__a0002")
}

// An endpoint of several servers declares whatever can be served there, whoever is up; the endpoint of one server what
// that one declares, and its own words. What is declared by nobody is an empty list, not a fault.
func TestCapabilitiesAndInstructions(t *testing.T) {
	t.Parallel()
	serve := func(name, capabilities, instructions string, era testmcp.Era) string {
		s := testmcp.Basic(name)
		s.Era, s.Capabilities, s.Instructions = era, capabilities, instructions
		return testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{}).Entry()
	}
	p := start(t, testmcp.Config(`{"server":{"name":"house","title":"The house","instructions":"Be kind."}}`, map[string]string{
		"tools":     serve("tools", `{"tools":{}}`, "Use the tools.", testmcp.Legacy),
		"resources": serve("resources", `{"prompts":{},"resources":{"subscribe":true}}`, "Read the resources.", testmcp.Modern),
		"words":     serve("words", `{"completions":{},"prompts":{},"x-more":{}}`, "", testmcp.Legacy),
		"down":      `{"url":"http://` + testmcp.RefusedAddr(t) + `/mcp"}`,
	}))
	for _, e := range eras {
		said := func(path string) testmcp.Raw {
			c := testmcp.Connect(t, p.Base+path, e.era)
			if e.era == testmcp.Modern {
				return c.Call("server/discover", "{}").Result()
			}
			return c.Opened.Result()
		}
		all := said("/mcp")
		for _, name := range []string{"tools", "prompts", "resources", "completions", "logging"} {
			equal(t, e.name+": "+name, all.Has("capabilities", name), true)
		}
		equal(t, e.name+": subscribe", all.At("capabilities", "resources", "subscribe").String(), "true")
		equal(t, e.name+": listChanged", all.At("capabilities", "tools", "listChanged").String(), "true")
		holds(t, e.name+": instructions", all.At("instructions").Str(), "Be kind.", "# tools", "Use the tools.", "# resources", "Read the resources.")
		one := said("/servers/resources/mcp")
		equal(t, e.name+": of one server", strings.Join(slices.Sorted(slices.Values(one.At("capabilities").Keys())), " "), "prompts resources")
		equal(t, e.name+": its own words", one.At("instructions").Str(), "Read the resources.")
		equal(t, e.name+": none of its own", said("/servers/words/mcp").Has("instructions"), false)
		// Nobody knows yet what it will offer, and it may come.
		equal(t, e.name+": of one that is down", said("/servers/down/mcp").Has("capabilities", "tools", "listChanged"), true)
	}
}

// Clients that poll for what nobody offers get empty lists from memory, and no line in the log for each.
func TestPollingForWhatNobodyOffers(t *testing.T) {
	t.Parallel()
	s := testmcp.Basic("tools-only")
	s.Era, s.Capabilities = testmcp.Legacy, `{"tools":{}}`
	h := testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{})
	p := start(t, testmcp.Config("", map[string]string{"web": h.Entry()}))
	before, lines := h.Rec.Count(testmcp.Is(testmcp.In)), len(p.Log())
	for _, e := range eras {
		for range 5 {
			c := p.Client(e.era)
			for _, l := range listers[1:] {
				equal(t, e.name+", "+l.method, c.Call(l.method, "{}").Result().At(l.member).String(), "[]")
			}
			equal(t, e.name+": a method of nobody", c.Call("nobody/knows", "{}").Code(), -32601)
		}
	}
	equal(t, "messages to the server", h.Rec.Count(testmcp.Is(testmcp.In))-before, 0)
	for _, line := range p.Log()[lines:] {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, `"level":"warn"`) {
			t.Errorf("the log says %s", line)
		}
	}
}
