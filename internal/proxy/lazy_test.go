package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// call is a request to call a tool.
func callOf(name, args string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + string(wire.AppendString(nil, name)) + `,"arguments":` + args + `}}`
}

func (st *stage) callIn(view, name, args string) string {
	c := legacyCaller()
	c.View = view
	return st.text(c, callOf(name, args))
}

// lazyOf gives the laziness of a configuration in words.
func lazyOf(mode config.LazyMode, pinned ...string) *config.Lazy {
	l := config.NewLazy(mode)
	l.Pinned = pinned
	return l
}

func TestWhatIsListedLazily(t *testing.T) {
	on, off, only := config.LazyOn, config.LazyOff, config.LazySearchOnly
	renamed := &config.Lazy{Mode: only, SearchTool: "look", CallTool: "run"}
	for _, c := range []struct {
		name          string
		all, a, small *config.Lazy // of everything, of one server, of the profile that has only that server
		mode          config.NamingMode
		want, inSmall string // placeholders have a star
	}{
		{name: "nothing is lazy", want: "a__one a__two b__one", inSmall: "a__one a__two"},
		{name: "one server", a: lazyOf(on), want: "a__one* a__two* b__one a__search_tools", inSmall: "a__one* a__two* a__search_tools"},
		{name: "everything", all: lazyOf(on), want: "a__one* a__two* b__one* search_tools", inSmall: "a__one* a__two* search_tools"},
		{name: "everything, whatever a server says", all: lazyOf(on), a: lazyOf(only), want: "a__one* a__two* b__one* search_tools", inSmall: "a__one* a__two* search_tools"},
		{name: "false for everything leaves it to the servers", all: lazyOf(off), a: lazyOf(on), want: "a__one* a__two* b__one a__search_tools", inSmall: "a__one* a__two* a__search_tools"},
		{name: "a profile", small: lazyOf(on), want: "a__one a__two b__one", inSmall: "a__one* a__two* search_tools"},
		{name: "a profile that is whole", all: lazyOf(on), a: lazyOf(on), small: lazyOf(off), want: "a__one* a__two* b__one* search_tools", inSmall: "a__one a__two"},
		{name: "search only", all: lazyOf(only), want: "search_tools call_tool", inSmall: "search_tools call_tool"},
		{name: "search only, pinned by both names", all: lazyOf(only, "a__t*", "one"), want: "a__one a__two b__one search_tools call_tool", inSmall: "a__one a__two search_tools call_tool"},
		{name: "search only in one server", a: lazyOf(only, "two"), want: "a__two b__one a__search_tools a__call_tool", inSmall: "a__two a__search_tools a__call_tool"},
		{name: "pinned beside placeholders", all: lazyOf(on, "a__two"), want: "a__one* a__two b__one* search_tools", inSmall: "a__one* a__two search_tools"},
		{name: "other names", all: renamed, want: "look run", inSmall: "look run"},
		{name: "other names of one server", a: renamed, want: "b__one a__look a__run", inSmall: "a__look a__run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := Options{Shape: Shape{Lazy: c.all, Profiles: map[string]config.Profile{"small": {Servers: []string{"a"}, Lazy: c.small}}}}
				st := newStage(t, o, func(s *config.Server) {
					if s.ID == "a" {
						s.Lazy = c.a
					}
				}, (&server{id: "a"}).tools("one", "two"), (&server{id: "b"}).tools("one"))
				defer st.stop()
				for view, want := range map[string]string{ViewAll: c.want, ProfileView("small"): c.inSmall, ServerView("a"): "one two"} {
					if got := st.schemas(view); got != want {
						t.Errorf("%q lists %q, want %q", view, got, want)
					}
					if view == ServerView("a") {
						continue
					}
					if got := st.callIn(view, "a__two", `{}`); !strings.Contains(got, "of a") {
						t.Errorf("%q: a call by the name gives %s", view, got)
					}
				}
			})
		})
	}
}

// schemas gives the names of the tools that a view lists, with a star behind those without their schema.
func (st *stage) schemas(view string) string {
	names := strings.Fields(st.listed(view, Tool))
	c := legacyCaller()
	c.View = view
	list := st.text(c, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for i, name := range names {
		if strings.Contains(list, `"name":"`+name+`","inputSchema":`+placeholder) {
			names[i] += "*"
		}
	}
	return strings.Join(names, " ")
}

// Servers whose search tools would have the same name share one.
func TestLazyServersWithOneNameShareTheirSearchTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Shape: Shape{Naming: naming(config.NamingNone)}}
		st := newStage(t, o, func(s *config.Server) {
			if s.ID != "c" {
				s.Lazy = lazyOf(config.LazyOn)
			}
		}, (&server{id: "a"}).tools("red_one"), (&server{id: "b"}).tools("red_two"), (&server{id: "c"}).tools("red_three"))
		defer st.stop()
		if got := st.schemas(ViewAll); got != "red_one* red_two* red_three search_tools" {
			t.Errorf("listed: %s", got)
		}
		got := st.callIn(ViewAll, "search_tools", `{"query":"red"}`)
		if !strings.Contains(got, `"total_matches":2`) || strings.Contains(got, "red_three") {
			t.Errorf("found: %s", got)
		}
	})
}

// A tool of a server that is called like one of ours is a duplicate, and what becomes of it is said by on_conflict.
func TestAServersOwnSearchToolIsADuplicate(t *testing.T) {
	for _, c := range []struct {
		policy config.OnConflict
		want   string
		fatal  bool
	}{
		{config.ConflictSkip, "get search_tools", false},
		{config.ConflictFail, "get search_tools", true},
		{config.ConflictSuffix, "search_tools_SUFFIX get search_tools", false},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := naming(config.NamingNone)
				n.OnConflict = c.policy
				profiles := map[string]config.Profile{"lazy": {Servers: []string{"a"}, Lazy: lazyOf(config.LazyOn)}, "whole": {Servers: []string{"a"}, Lazy: lazyOf(config.LazyOff)}}
				for _, all := range []*config.Lazy{nil, lazyOf(config.LazyOn)} {
					st := newStage(t, Options{Shape: Shape{Naming: n, Lazy: all, Profiles: profiles}}, nil, (&server{id: "a"}).tools("search_tools", "get"))
					got := st.listed(ProfileView("lazy"), Tool)
					suffix := longHash("a\x00search_tools")
					if want := strings.ReplaceAll(c.want, "SUFFIX", suffix); got != want {
						t.Errorf("the lazy profile lists %q, want %q", got, want)
					}
					// Where there is no tool of ours, theirs has its name.
					if got := st.listed(ProfileView("whole"), Tool); got != "search_tools get" {
						t.Errorf("the whole profile lists %q", got)
					}
					if fatal := len(st.p.Conflicts()) > 0; fatal != c.fatal {
						t.Errorf("conflicts: %v", st.p.Conflicts())
					}
					st.stop()
				}
			})
		})
	}
}

func TestSearchResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 21 {
			names = append(names, fmt.Sprintf("red_%02d", i))
		}
		for i := range 20 {
			names = append(names, fmt.Sprintf("blue_%02d", i))
		}
		exact := `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`
		a := (&server{id: "a"}).tools(names...)
		a.lists[Tool] = append(a.lists[Tool], `{"name":"deep","description":"Digs \u00fcber","inputSchema":`+exact+`,"outputSchema":{"type":"object"}}`)
		st := newStage(t, Options{Shape: Shape{Lazy: lazyOf(config.LazyOn)}}, nil, a)
		defer st.stop()
		for query, want := range map[string][2]any{"red": {21, true}, "blue": {20, false}, "a__": {42, true}, "deep": {1, false}, "void": {0, false}} {
			got := st.callIn(ViewAll, "search_tools", `{"query":"`+query+`"}`)
			head := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":`
			value := got[strings.Index(got, `"structuredContent":`)+len(`"structuredContent":`) : len(got)-2]
			if same := head + string(wire.AppendString(nil, value)) + `}],"structuredContent":` + value + `}}`; got != same {
				t.Errorf("text and structured content differ: %s", got)
			}
			if n := strings.Count(value, `"input_schema":`); n != min(want[0].(int), 20) {
				t.Errorf("%s: %d entries", query, n)
			}
			if !strings.Contains(value, fmt.Sprintf(`"total_matches":%d`, want[0])) || strings.Contains(value, `"truncated":true`) != want[1] || strings.Contains(value, `"truncated":false`) {
				t.Errorf("%s: %s", query, value)
			}
		}
		got := st.callIn(ViewAll, "search_tools", `{"query":"deep"}`)
		if !strings.Contains(got, `{"name":"a__deep","description":"Digs \u00fcber","input_schema":`+exact+`}`) {
			t.Errorf("the entry is %s", got)
		}
		for args, why := range map[string]string{`{}`: "missing", `{"query":null}`: "string", `{"query":5}`: "string", `{"query":["x"]}`: "string", `{"query":""}`: "empty", `{"query":" \t"}`: "empty"} {
			if got := st.callIn(ViewAll, "search_tools", args); !strings.Contains(got, `"code":-32602`) || !strings.Contains(got, why) {
				t.Errorf("%s: %s", args, got)
			}
		}
		list := st.text(modernCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		own := list[strings.Index(list, `{"name":"search_tools"`):]
		if !strings.Contains(own, `"annotations":{"readOnlyHint":true}`) || !strings.Contains(own, `"required":["query"]`) || strings.Count(own, "inputSchema") != 1 {
			t.Errorf("the search tool is %s", own)
		}
		if !strings.Contains(list, "Digs über (Full input schema available via the `search_tools` tool.)") || !strings.Contains(list, `"description":"(Full`) {
			t.Errorf("the hints are not there: %s", list)
		}
	})
}

func TestCallsThroughCallTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := (&server{id: "a"}).tools("one", "hidden"), (&server{id: "b"}).tools("two")
		lazy := lazyOf(config.LazySearchOnly)
		st := newStage(t, Options{}, func(s *config.Server) {
			s.ToolPolicy.Deny = []string{"hidden"}
			if s.ID == "a" {
				s.Lazy = lazy
			}
		}, a, b)
		defer st.stop()
		for _, c := range []struct{ name, args, want string }{
			{"a tool", `{"name":"a__one","arguments":{"n":9007199254740993, "deep":{"x":[1.10]}}}`, `"text":"of a"`},
			{"without arguments", `{"name":"a__one"}`, `"text":"of a"`},
			{"more than it knows", `{"more":{},"arguments":{},"name":"a__one"}`, `"text":"of a"`},
			{"the search tool", `{"name":"a__search_tools","arguments":{"query":"one"}}`, `"total_matches":1`},
			{"no name", `{"arguments":{}}`, `the argument name must be`},
			{"a name that is none", `{"name":7}`, `the argument name must be`},
			{"arguments that are none", `{"name":"a__one","arguments":[1]}`, `the argument arguments must be an object`},
			{"no arguments at all", `{}`, `the argument name must be`},
			{"what a policy hides", `{"name":"a__hidden"}`, `unknown tool: a__hidden"`},
			{"what never was", `{"name":"a__nothing"}`, `unknown tool: a__nothing"`},
			{"a tool of another server", `{"name":"b__two"}`, `unknown tool: b__two"`},
			{"itself", `{"name":"a__call_tool","arguments":{"name":"a__one"}}`, `unknown tool: a__call_tool"`},
		} {
			for _, who := range []*Caller{legacyCaller(), modernCaller()} {
				if got := st.text(who, callOf("a__call_tool", c.args)); !strings.Contains(got, c.want) {
					t.Errorf("%s (%s): %s, want %s", c.name, who.Era, got, c.want)
				}
			}
		}
		seen := a.received("tools/call")
		if len(seen) != 6 || !strings.Contains(seen[0], `"name":"one"`) || !strings.Contains(seen[0], `{"n":9007199254740993, "deep":{"x":[1.10]}}`) {
			t.Errorf("the server saw %q", seen)
		}
		if len(b.received("tools/call")) != 0 {
			t.Error("the other server was called")
		}
	})
}

// Whoever lists no schemas cannot know which arguments headers repeat.
func TestHeadersOfLazyTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, `{"name":"t","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}`)
		for _, lazy := range []bool{false, true} {
			o := Options{}
			if lazy {
				o.Lazy = lazyOf(config.LazyOn)
			}
			st := newStage(t, o, nil, s)
			f, err := wire.Parse([]byte(callOf("a__t", `{"r":"eu"}`)), wire.Downstream, wire.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			st.listed(ViewAll, Tool)
			a := st.p.Handle(t.Context(), func(error) {}, &Request{Caller: modernCaller(), Frame: f, Sink: &listener{}, Param: func(string) (string, bool) { return "", false }})
			if refused := a.Code == wire.CodeHeaderMismatch; refused == lazy {
				t.Errorf("lazy is %v, and the answer %s", lazy, a.Bytes())
			}
			st.stop()
		}
	})
}

// A list that shows no schemas has not changed when only a schema has, and one that shows no tools when there is another.
func TestChangesThatALazyListDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).tools("one")
		profiles := map[string]config.Profile{"names": {Servers: []string{"a"}, Lazy: lazyOf(config.LazyOn)}, "search": {Servers: []string{"a"}, Lazy: lazyOf(config.LazySearchOnly)}}
		st := newStage(t, Options{Shape: Shape{Profiles: profiles}}, nil, s)
		defer st.stop()
		st.listed(ViewAll, Tool)
		st.told("")
		change := func(items ...string) map[string]bool {
			s.set(Tool, items...).notify("notifications/tools/list_changed", "{}")
			pass(refreshPause * 3)
			synctest.Wait()
			st.mu.Lock()
			defer st.mu.Unlock()
			told := map[string]bool{}
			for _, c := range st.changes {
				view, _, _ := strings.Cut(c, " ")
				told[view] = true
			}
			st.changes = nil
			return told
		}
		if got := change(`{"name":"one","inputSchema":{"type":"object","title":"new"}}`); !got[ViewAll] || got[ProfileView("names")] || got[ProfileView("search")] {
			t.Errorf("of another schema were told: %v", got)
		}
		if got := change(tool("one"), tool("two")); !got[ViewAll] || !got[ProfileView("names")] || got[ProfileView("search")] {
			t.Errorf("of another tool were told: %v", got)
		}
		if got := st.callIn(ProfileView("search"), "search_tools", `{"query":"two"}`); !strings.Contains(got, `"total_matches":1`) {
			t.Errorf("it is not found: %s", got)
		}
	})
}

// What is told of a lazy view says how to come to its tools, and a server's own pins hold in every view.
func TestLazyInstructionsAndPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Shape: Shape{Lazy: lazyOf(config.LazySearchOnly), Profiles: map[string]config.Profile{"w": {Servers: []string{"a"}, Lazy: lazyOf(config.LazyOff)}}}}
		st := newStage(t, o, func(s *config.Server) { s.Lazy = lazyOf(config.LazyOff, "two") }, (&server{id: "a"}).tools("one", "two"))
		defer st.stop()
		if got := st.schemas(ViewAll); got != "a__two search_tools call_tool" {
			t.Errorf("listed: %s", got)
		}
		text := st.p.Instructions(ViewAll)
		if !strings.Contains(text, "`search_tools` finds tools") || !strings.Contains(text, "`call_tool` calls by its name") || !strings.Contains(text, "2 tools") {
			t.Errorf("the instructions are %s", text)
		}
		if text := st.p.Instructions(ProfileView("w")); strings.Contains(text, "search_tools") {
			t.Errorf("the instructions of a whole view are %s", text)
		}
	})
}
