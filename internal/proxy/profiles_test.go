package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

func TestProfilesWithNamesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, dotted := naming(config.NamingNone), naming(config.NamingAlways)
		dotted.Template = "{tool}-{server}"
		conflict := naming(config.NamingOnConflict)
		skip := plain
		skip.OnConflict = config.ConflictSkip
		profiles := map[string]config.Profile{
			"plain":    {Servers: []string{"b"}, Naming: &plain, Instructions: "Be quick."},
			"dotted":   {Servers: []string{"b", "a"}, Naming: &dotted},
			"alone":    {Servers: []string{"a"}, Naming: &conflict},
			"together": {Servers: []string{"a", "b"}, Naming: &conflict},
			"same":     {Servers: []string{"a"}},
			"skip":     {Servers: []string{"a", "b"}, Naming: &skip},
		}
		a, b := (&server{id: "a"}).tools("get", "put"), (&server{id: "b"}).tools("get")
		server := config.ServerInfo{Name: "p", Version: "1", Instructions: "Be slow."}
		st := newStage(t, Options{Shape: Shape{Profiles: profiles, Server: server}}, nil, a, b)
		defer st.stop()
		for view, want := range map[string]string{
			ViewAll: "a__get a__put b__get", ProfileView("plain"): "get", ProfileView("dotted"): "get-a put-a get-b", ProfileView("alone"): "get put",
			ProfileView("together"): "a__get put b__get", ProfileView("same"): "a__get a__put", ProfileView("skip"): "get put",
		} {
			if got := st.listed(view, Tool); got != want {
				t.Errorf("%q lists %q, want %q", view, got, want)
			}
		}
		if got := st.callIn(ProfileView("plain"), "get", `{}`); !strings.Contains(got, "of b") || !strings.Contains(b.received("tools/call")[0], `"name":"get"`) {
			t.Errorf("a call gives %s", got)
		}
		if got := st.callIn(ProfileView("plain"), "b__get", `{}`); !strings.Contains(got, "unknown tool") {
			t.Errorf("a call by the name of everybody else gives %s", got)
		}
		if all, own := st.p.Instructions(ViewAll), st.p.Instructions(ProfileView("plain")); !strings.HasPrefix(all, "Be slow.") || !strings.HasPrefix(own, "Be quick.") ||
			strings.Contains(own, "slow") || !strings.Contains(own, "called like get") {
			t.Errorf("the instructions are %q and %q", all, own)
		}
		names := map[string]string{}
		for _, n := range st.p.Names() {
			names[n.Profile] += fmt.Sprintf("%s=%s.%s(%s) ", n.Exposed, n.Upstream, n.Wire, n.Effect)
			if n.Profile == "skip" && n.Exposed == "" && !strings.HasPrefix(n.Why, "withheld: ") {
				t.Errorf("%+v", n)
			}
		}
		if names[""] != "a__get=a.get(side_effect) a__put=a.put(side_effect) b__get=b.get(side_effect) " || names["plain"] != "get=b.get(side_effect) " || names["same"] != "" ||
			names["skip"] != "get=a.get(side_effect) put=a.put(side_effect) =b.get(side_effect) " {
			t.Errorf("the names are %q", names)
		}
	})
}

// Views whose items look the same share them, so many profiles cost little.
func TestProfilesShareWhatTheyCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy := lazyOf(config.LazyOn)
		profiles := map[string]config.Profile{"one": {Servers: []string{"a"}}, "two": {Servers: []string{"a"}, Lazy: lazy}, "three": {Servers: []string{"a"}, Lazy: lazy}}
		st := newStage(t, Options{Shape: Shape{Profiles: profiles}}, nil, (&server{id: "a"}).tools("t"))
		defer st.stop()
		st.listed(ViewAll, Tool)
		views := st.p.catalog.snap.Load().views
		of := func(profile string) *Item { return views[profile].find(Tool, "a__t") }
		if of(ViewAll) != of(ProfileView("one")) || of(ProfileView("two")) != of(ProfileView("three")) || of(ViewAll) == of(ProfileView("two")) {
			t.Error("the items are not shared")
		}
	})
}

// What has not changed is the same in the next snapshot, and what has is not.
func TestSnapshotsShareWhatHasNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := (&server{id: "a"}).tools("t"), (&server{id: "b"}).tools("t", "u")
		profiles := map[string]config.Profile{"a": {Servers: []string{"a"}}}
		st := newStage(t, Options{Shape: Shape{Lazy: lazyOf(config.LazyOn), Profiles: profiles}}, nil, a, b)
		defer st.stop()
		st.listed(ViewAll, Tool)
		all := func() *view { return st.p.catalog.snap.Load().views[ViewAll] }
		before, searches := all(), func(v string) *index { return st.p.catalog.snap.Load().views[v].find(Tool, "search_tools").find }
		everywhere, there := searches(ViewAll), searches(ProfileView("a"))
		b.set(Tool, `{"name":"t","description":"new","inputSchema":{"type":"object"}}`).notify("notifications/tools/list_changed", "{}")
		pass(refreshPause * 3)
		synctest.Wait()
		after := all()
		if before == after || before.find(Tool, "a__t") != after.find(Tool, "a__t") {
			t.Error("the item of the other server is not shared")
		}
		if searches(ProfileView("a")) != there || searches(ViewAll) == everywhere {
			t.Error("the search over what has not changed is made anew, or the other is not")
		}
		if now := after.find(Tool, "b__t"); now == before.find(Tool, "b__t") || !strings.Contains(string(now.text[classModern]), "new") {
			t.Errorf("the item is %s", now.text[classModern])
		}
		if got := st.schemas(ViewAll); got != "a__t* b__t search_tools" {
			t.Errorf("listed: %s", got)
		}
		// Another configuration of the server is another item, whatever its name.
		st.p.Apply(Shape{Naming: naming(config.NamingNone), Server: config.ServerInfo{Name: "p", Version: "1"}})
		pass(tellGrace * 2)
		if got := st.listed(ViewAll, Tool); got != "t" {
			t.Errorf("listed: %s", got)
		}
	})
}

// A reload changes what is lazy, and clients whose list is another are told.
func TestLazinessAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{}, nil, (&server{id: "a"}).tools("t"))
		defer st.stop()
		st.listed(ViewAll, Tool)
		st.told("")
		set := st.p.set.Load()
		shape := Shape{Naming: set.naming, Lazy: lazyOf(config.LazyOn), Server: config.ServerInfo{Name: "p", Version: "1"}}
		st.p.Apply(shape)
		pass(tellGrace * 2)
		if got := st.schemas(ViewAll); got != "a__t* search_tools" {
			t.Errorf("listed: %s", got)
		}
		if got := st.told(ViewAll); len(got) != 1 {
			t.Errorf("told: %q", got)
		}
	})
}

// BenchmarkSnapshot merges the catalog of 6,000 tools for everything, its server and many profiles, as each change does.
func BenchmarkSnapshot(b *testing.B) {
	l := &listing{}
	for i := range 6000 {
		o, err := parseOffer(Tool, fmt.Appendf(nil, `{"name":"update_invoice_%04d","description":"Updates an invoice of the department %d. Needs the rights of the department.","inputSchema":{"type":"object"}}`, i, i))
		if err != nil {
			b.Fatal(err)
		}
		l.offers[Tool] = append(l.offers[Tool], o)
	}
	for _, lazy := range []bool{false, true} {
		for _, profiles := range []int{0, 20} {
			b.Run(fmt.Sprintf("profiles=%d,lazy=%v", profiles, lazy), func(b *testing.B) {
				shape := Shape{Naming: naming(config.NamingAlways), Profiles: map[string]config.Profile{}}
				if lazy {
					shape.Lazy = lazyOf(config.LazyOn)
				}
				for i := range profiles {
					shape.Profiles[fmt.Sprint("p", i)] = config.Profile{Servers: []string{"s"}, ToolPolicy: config.Policy{Deny: []string{fmt.Sprintf("*_%04d", i)}}}
				}
				u := upstream.New(serverConfig("s"), upstream.Options{Log: zap.NewNop(), Limits: config.Limits{MaxFrameBytes: 1 << 22}, Metrics: upstream.NewMetrics(prometheus.NewRegistry()), Observer: &Relay{}})
				s := newSettings([]*upstream.Upstream{u}, shape)
				b.ReportAllocs()
				var before *snapshot
				for b.Loop() {
					m := newMerger(s, map[string]*listing{"s": l}, zap.NewNop(), func(*view, Kind) []byte { return nil })
					m.follow(before)
					before = m.build()
				}
			})
		}
	}
}
