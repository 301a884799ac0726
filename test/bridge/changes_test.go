package bridge

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// growing has one more prompt, resource or template each time that its tool is called, and says so.
var _ = behaviour("growing", func() *testmcp.Server {
	s := testmcp.Basic("growing")
	list := func(member, form string) testmcp.Handler {
		return func(c *testmcp.Call) {
			var items []string
			for i := range c.Instance().Add(member, 0) + 1 {
				items = append(items, strings.ReplaceAll(form, "N", string(rune('0'+i))))
			}
			c.Result(`{"` + member + `":[` + strings.Join(items, ",") + `]}`)
		}
	}
	s.On = map[string]testmcp.Handler{
		"prompts/list":             list("prompts", `{"name":"pN"}`),
		"resources/list":           list("resources", `{"uri":"r://N","name":"r"}`),
		"resources/templates/list": list("resourceTemplates", `{"uriTemplate":"tN://{x}","name":"t"}`),
	}
	s.Tools = append(s.Tools, testmcp.SimpleTool("grow", func(c *testmcp.Call) {
		member := c.Args("member").Str()
		c.Instance().Add(member, 1)
		word := map[bool]string{true: "prompts", false: "resources"}[member == "prompts"]
		c.Instance().Notify("notifications/"+word+"/list_changed", "")
		c.Text("grown")
	}))
	return s
})

// A change of prompts, resources or templates is told to clients of both eras as what it is, once, and the list has it.
func TestChangesOfEveryListAreTold(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p, rec := startOne(t, k, "growing", `{"naming":{"mode":"none"}}`)
			old, fresh := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
			news, listen := old.Get(""), fresh.Listen(`{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}`)
			tools := fresh.Listen(`{"toolsListChanged":true}`)
			for _, s := range []*testmcp.Stream{listen, tools} {
				s.WaitMethod("notifications/subscriptions/acknowledged")
			}
			waitHeard(rec, t, k)
			for i, l := range listers[1:] {
				changed := "notifications/" + map[bool]string{true: "prompts", false: "resources"}[i == 0] + "/list_changed"
				seen := []int{count(news, changed), count(listen, changed)}
				equal(t, l.member, old.CallTool("grow", `{"member":"`+l.member+`"}`).Text(), "grown")
				for j, s := range []*testmcp.Stream{news, listen} {
					testmcp.Eventually(t, changed, func() bool { return count(s, changed) > seen[j] })
				}
				for _, c := range []*testmcp.Client{old, fresh} {
					equal(t, l.method, len(c.List(l.method, l.member)), 2)
				}
			}
			for _, s := range []*testmcp.Stream{news, listen} {
				equal(t, "announcements of prompts", count(s, "notifications/prompts/list_changed"), 1)
				equal(t, "announcements of resources", count(s, "notifications/resources/list_changed"), 2)
				equal(t, "announcements of tools", count(s, "notifications/tools/list_changed"), 0)
			}
			equal(t, "told to who listens for tools", len(tools.Events()), 1)
		})
	}
}

// waitHeard waits until the proxy hears what the server announces outside of calls.
func waitHeard(rec *testmcp.Recorder, t *testing.T, k kind) {
	t.Helper()
	switch {
	case k.era == testmcp.Modern:
		rec.Wait(t, testmcp.Received("subscriptions/listen"))
	case k.web && k != sse:
		rec.Wait(t, func(r testmcp.Record) bool { return r.Kind == testmcp.Request && strings.HasPrefix(r.Text, "GET ") })
	}
}

// count says how many messages of a method have come.
func count(s *testmcp.Stream, method string) int {
	n := 0
	for _, e := range s.Events() {
		if e.Message().Method == method {
			n++
		}
	}
	return n
}
