package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
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
