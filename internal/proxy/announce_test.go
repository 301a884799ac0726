package proxy

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// announced says that the lists have changed, waits until they have been looked at, and gives what a view was told.
func (st *stage) announced(s *server, view string) []string {
	pass(5 * time.Second)
	synctest.Wait()
	st.told("")
	s.notify("notifications/tools/list_changed", `{}`)
	pass(5 * time.Second)
	synctest.Wait()
	return st.told(view)
}

func TestWhoIsToldOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).tools("one", "two", "hidden")
		o := Options{Shape: Shape{Profiles: map[string]config.Profile{"p": {Servers: []string{"a"}, ToolPolicy: config.Policy{Expose: []string{"one"}}}}}}
		st := newStage(t, o, func(c *config.Server) { c.ToolPolicy.Deny = []string{"hidden*"} }, s)
		defer st.stop()
		pass(5 * time.Second)
		for _, c := range []struct {
			name    string
			change  func()
			all     string
			profile string
		}{
			{"nothing", func() {}, "", ""},
			{"another order", func() { s.tools("hidden", "two", "one") }, "", ""},
			{"a hidden tool", func() { s.tools("hidden2", "two", "one") }, "", ""},
			{"a tool more", func() { s.tools("two", "one", "three") }, "true false false", ""},
			{"a tool less", func() { s.tools("two", "three") }, "true false false", "true false false"},
			{"another description", func() {
				s.set(Tool, tool("two"), `{"name":"three","description":"new","inputSchema":{"type":"object"}}`)
			}, "true false false", ""},
			{"a prompt", func() { s.set(Prompt, `{"name":"p"}`) }, "false true false", "false true false"},
			{"a resource", func() { s.set(Resource, `{"uri":"a:b","name":"r"}`) }, "false false true", "false false true"},
			{"a template", func() { s.set(Template, `{"uriTemplate":"a:{b}","name":"r"}`) }, "false false true", "false false true"},
		} {
			c.change()
			if got := strings.Join(st.announced(s, ViewAll), ","); got != c.all {
				t.Errorf("%s: everybody is told %q, want %q", c.name, got, c.all)
			}
		}
		s.tools("one")
		if got := strings.Join(st.announced(s, ProfileView("p")), ","); got != "true false false" {
			t.Errorf("a tool of the profile: told %q", got)
		}
		s.tools("one", "other")
		if got := st.announced(s, ProfileView("p")); len(got) != 0 {
			t.Errorf("a tool that the profile hides: told %q", got)
		}
	})
}

// However often a server announces changes, its lists are looked at about once a second.
func TestAStormOfAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a", caps: `{"tools":{"listChanged":true}}`}).tools("one")
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		pass(5 * time.Second)
		before := len(s.received("tools/list"))
		for range 1000 {
			s.notify("notifications/tools/list_changed", `{}`)
			pass(5 * time.Millisecond)
		}
		pass(5 * time.Second)
		if n := len(s.received("tools/list")) - before; n < 4 || n > 7 {
			t.Errorf("5 s of announcements cost %d listings", n)
		}
		// What comes last is not missed.
		s.tools("one", "last")
		s.notify("notifications/tools/list_changed", `{}`)
		pass(2 * time.Second)
		if got := st.listed(ViewAll, Tool); got != "a__one a__last" {
			t.Errorf("tools: %s", got)
		}
	})
}

func TestAnnouncementsThatComeTogetherCostOneListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a", caps: `{"tools":{"listChanged":true}}`}).tools("one")
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		pass(5 * time.Second)
		before := len(s.received("tools/list"))
		for range 10 {
			s.notify("notifications/tools/list_changed", `{}`)
		}
		pass(10 * time.Second)
		if n := len(s.received("tools/list")) - before; n != 1 {
			t.Errorf("they cost %d listings", n)
		}
	})
}

// A server that does not say that it tells of changes is looked at now and then, one that does is not.
func TestAServerThatTellsOfNoChangesIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := (&server{id: "a", caps: `{"tools":{}}`}).tools("one")
		telling := (&server{id: "b", caps: `{"tools":{"listChanged":true}}`}).tools("two")
		// It says that it announces changes, and refuses to be listened to.
		refusing := (&server{id: "c", era: wire.Modern, caps: `{"tools":{"listChanged":true}}`}).tools("three")
		// It honours nothing of a subscription, and one only a part.
		none, part := honouring("d", `{}`), honouring("e", `{"toolsListChanged":false}`)
		whole := honouring("f", `{"toolsListChanged":true}`)
		st := newStage(t, Options{}, nil, silent, telling, refusing, none, part, whole)
		defer st.stop()
		pass(5 * time.Second)
		first := len(telling.received("tools/list"))
		silent.tools("one", "new")
		refusing.tools("three", "fresh")
		none.tools("four")
		part.tools("five")
		pass(refreshUnheard)
		if got := st.listed(ViewAll, Tool); got != "a__one a__new b__two c__three c__fresh d__four e__five" {
			t.Errorf("tools: %s", got)
		}
		pass(time.Hour)
		for name, s := range map[string]*server{"silent": silent, "refusing": refusing, "dishonouring": none, "partly honouring": part} {
			if n := len(s.received("tools/list")); n < 12 || n > 16 {
				t.Errorf("the %s one was asked %d times within an hour", name, n)
			}
		}
		if n := len(refusing.received("subscriptions/listen")); n != 1 {
			t.Errorf("the one that refuses was asked to announce changes %d times", n)
		}
		for name, n := range map[string]int{"telling": len(telling.received("tools/list")) - first, "honouring": len(whole.received("tools/list")) - 1} {
			if n > 1 {
				t.Errorf("the %s one was asked %d times more", name, n)
			}
		}
	})
}
