package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestListsComeInTheOrderOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := (&server{id: "b"}).tools("two", "one").set(Prompt, `{"name":"ask"}`)
		a := (&server{id: "a", era: wire.Modern}).tools("one")
		st := newStage(t, Options{}, nil, b, a)
		defer st.stop()
		if got := st.listed(ViewAll, Tool); got != "b__two b__one a__one" {
			t.Errorf("tools: %s", got)
		}
		if got := st.listed(ViewAll, Prompt); got != "b__ask" {
			t.Errorf("prompts: %s", got)
		}
		if got := st.listed(ServerView("b"), Tool); got != "two one" {
			t.Errorf("tools of b: %s", got)
		}
		if n := metricOf(t, st.reg, "mcp_proxy_catalog_items", "upstream", "b", "kind", "tool"); n != 2 {
			t.Errorf("%v tools of b are counted", n)
		}
		if !st.p.HasView(ViewAll) || !st.p.HasView(ServerView("a")) || st.p.HasView(ServerView("c")) {
			t.Error("the views are others")
		}
	})
}

func TestViewsHideWhatPoliciesDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Shape: Shape{Profiles: map[string]config.Profile{"small": {Servers: []string{"a"}, ToolPolicy: config.Policy{Deny: []string{"d*"}}}, "none": {}}}}
		st := newStage(t, o, func(c *config.Server) { c.ToolPolicy.Deny = []string{"hidden"} },
			(&server{id: "a"}).tools("get", "drop", "hidden"), (&server{id: "b"}).tools("get"))
		defer st.stop()
		for view, want := range map[string]string{ViewAll: "a__get a__drop b__get", ProfileView("small"): "a__get", ServerView("a"): "get drop", ProfileView("none"): ""} {
			if got := st.listed(view, Tool); got != want {
				t.Errorf("%q: %s, want %s", view, got, want)
			}
		}
		// What is hidden and what was never there is refused alike.
		c := legacyCaller()
		c.View = ProfileView("small")
		call := func(name string) string {
			a := st.request(c, nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`)
			return strings.ReplaceAll(string(a.Bytes()), name, "NAME")
		}
		absent := call("a__absent")
		for _, name := range []string{"a__drop", "a__hidden", "b__get", "get"} {
			if got := call(name); got != absent {
				t.Errorf("%s is refused by %s, an absent one by %s", name, got, absent)
			}
		}
		if got := call("a__get"); !strings.Contains(got, "of a") {
			t.Errorf("what is offered: %s", got)
		}
	})
}

func TestConflictsOfNames(t *testing.T) {
	for _, c := range []struct {
		mode   config.NamingMode
		policy config.OnConflict
		want   string // "*" stands for a hash
	}{
		{config.NamingNone, config.ConflictFail, "get put"},
		{config.NamingNone, config.ConflictSkip, "get put"},
		{config.NamingNone, config.ConflictSuffix, "get put get_*"},
		{config.NamingOnConflict, config.ConflictFail, "a__get put b__get"},
		{config.NamingAlways, config.ConflictFail, "a__get a__put b__get"},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := naming(c.mode)
			n.OnConflict = c.policy
			st := newStage(t, Options{Shape: Shape{Naming: n}}, nil, (&server{id: "a"}).tools("get", "put"), (&server{id: "b"}).tools("get"))
			defer st.stop()
			got := st.listed(ViewAll, Tool)
			want, hash := strings.CutSuffix(c.want, "*")
			if !strings.HasPrefix(got, want) || hash != (len(got) == len(want)+8) || !hash && got != want {
				t.Errorf("%s, %s: %s, want %s", c.mode, c.policy, got, c.want)
			}
			conflicts := st.p.Conflicts()
			if fails := c.mode == config.NamingNone && c.policy == config.ConflictFail; fails != (len(conflicts) == 1) {
				t.Errorf("%s, %s: conflicts %v", c.mode, c.policy, conflicts)
			}
			// Whichever way, the call goes to the owner of the name.
			for name, of := range map[string]string{strings.Fields(got)[0]: "of a", strings.Fields(got)[len(strings.Fields(got))-1]: "of b"} {
				if of == "of b" && !strings.Contains(c.want, "b__") && !hash {
					continue
				}
				a := st.request(legacyCaller(), nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`"}}`)
				if !strings.Contains(string(a.Bytes()), of) {
					t.Errorf("%s is answered by %s, want %s", name, a.Bytes(), of)
				}
			}
		})
	}
}

// honouring is a modern server that acknowledges this of each subscription, and keeps it open.
func honouring(id, what string) *server {
	s := &server{id: id, era: wire.Modern, caps: `{"tools":{"listChanged":true}}`}
	s.on = func(f *wire.Frame, rw io.Writer) (string, bool) {
		if f.Method != "subscriptions/listen" {
			return "", false
		}
		_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`+"\n", f.ID.Of(f.Raw), what)
		return "", true
	}
	return s
}

// paged serves the tools list in pages: page n is what script gives for the cursor.
func paged(s *server, script map[string]string) *server {
	s.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
		if f.Method != "tools/list" {
			return "", false
		}
		cursor, _ := wire.DecodeString(f.Body.Get(f.Raw, "cursor").Of(f.Raw))
		s.mu.Lock()
		defer s.mu.Unlock()
		return script[cursor], true
	}
	return s
}

func page(next string, names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, tool(n))
	}
	out := `"result":{"tools":[` + strings.Join(items, ",") + `]`
	if next != "" {
		out += `,"nextCursor":"` + next + `"`
	}
	return out + "}"
}

func TestPages(t *testing.T) {
	const fails = `"error":{"code":-32603,"message":"database"}`
	for _, c := range []struct {
		name   string
		script map[string]string
		want   string
		fails  string
	}{
		{"several", map[string]string{"": page("2", "a", "b"), "2": page("3", "c"), "3": page("", "d")}, "s__a s__b s__c s__d", ""},
		{"an empty cursor ends", map[string]string{"": `"result":{"tools":[` + tool("a") + `],"nextCursor":""}`}, "s__a", ""},
		{"a null cursor ends", map[string]string{"": `"result":{"tools":[` + tool("a") + `],"nextCursor":null}`}, "s__a", ""},
		{"the same tool on two pages", map[string]string{"": page("2", "a", "b"), "2": page("", "b", "c")}, "s__a s__b s__c", ""},
		{"a cursor that comes again", map[string]string{"": page("2", "a"), "2": page("2", "b")}, "s__a s__b", ""},
		{"cursors in a circle", map[string]string{"": page("2", "a"), "2": page("3", "b"), "3": page("2", "c")}, "s__a s__b s__c", ""},
		{"the second fails", map[string]string{"": page("2", "a"), "2": fails}, "s__a", "database"},
		{"all fail", map[string]string{"": fails}, "", "database"},
		{"no such method", map[string]string{"": `"error":{"code":-32601,"message":"no"}`}, "", ""},
		{"items that are none", map[string]string{"": `"result":{"tools":[null,{},{"name":""},` + tool("a") + `]}`}, "s__a", ""},
		{"no array", map[string]string{"": `"result":{"tools":{}}`}, "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			st := newStage(t, Options{}, nil, paged(&server{id: "s"}, c.script))
			defer st.stop()
			got := st.listed(ViewAll, Tool)
			err := st.p.ListFailure("s")
			if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %q and %v, want %q and %q", c.name, got, err, c.want, c.fails)
			}
		})
	}
}

// A list that fails, wholly or behind its first page, keeps what was known before, and is looked at again.
func TestAListThatFailsKeepsTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := map[string]string{"": page("2", "a", "b"), "2": page("", "c")}
		s := paged(&server{id: "s"}, script)
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		const whole = "s__a s__b s__c"
		if got := st.listed(ViewAll, Tool); got != whole {
			t.Fatalf("tools: %s", got)
		}
		change := func(cursor, answer string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			script[cursor] = answer
		}
		for _, broken := range []string{"2", ""} {
			change(broken, `"error":{"code":-32603,"message":"database"}`)
			if told := st.announced(s, ViewAll); len(told) != 0 || st.listed(ViewAll, Tool) != whole || st.p.ListFailure("s") == nil {
				t.Errorf("page %q broken: told %q, tools %s, failure %v", broken, told, st.listed(ViewAll, Tool), st.p.ListFailure("s"))
			}
		}
		change("", page("", "new"))
		pass(refreshAgain + 2*time.Second)
		if got := st.listed(ViewAll, Tool); got != "s__new" || st.p.ListFailure("s") != nil {
			t.Errorf("later: %s, %v", got, st.p.ListFailure("s"))
		}
	})
}

// A list that is asked for at the start waits for those who are coming, but not for long.
func TestListsWaitAtTheStart(t *testing.T) {
	for _, c := range []struct {
		slow, wait time.Duration
		want       string
	}{{time.Second, 1050 * time.Millisecond, "quick__t slow__t"}, {time.Minute, 2 * time.Second, "quick__t"}} {
		synctest.Test(t, func(t *testing.T) {
			slow := (&server{id: "slow"}).tools("t")
			slow.on = func(f *wire.Frame, _ io.Writer) (string, bool) {
				if f.Method == "server/discover" {
					pass(min(c.slow, 14*time.Second))
				}
				return "", false
			}
			st := newStage(t, Options{}, nil, (&server{id: "quick"}).tools("t"), slow)
			defer st.stop()
			began := time.Now()
			got := st.listed(ViewAll, Tool)
			if took := time.Since(began); got != c.want || took > c.wait+time.Millisecond {
				t.Errorf("after %s: %s, want %s after %s", took, got, c.want, c.wait)
			}
		})
	}
}

// What an upstream offered stays while it is away.
func TestAnUpstreamThatIsAwayKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).tools("one")
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		before := st.listed(ViewAll, Tool)
		pass(5 * time.Second)
		st.told("")
		s.mu.Lock()
		_ = s.w.(io.Closer).Close()
		s.mu.Unlock()
		synctest.Wait()
		if got := st.listed(ViewAll, Tool); got != before || len(st.told(ViewAll)) != 0 {
			t.Errorf("while it is away: %s", got)
		}
		a := st.request(legacyCaller(), nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__one"}}`)
		if got := string(a.Bytes()); !strings.Contains(got, `"reason":"unavailable"`) || !strings.Contains(got, `"message":"a::one: `) {
			t.Errorf("a call while it is away: %s", got)
		}
	})
}

func TestLazyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, `{"name":"get_issue","description":"Reads an Issue","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"outputSchema":{"type":"object"}}`, tool("list"))
		st := newStage(t, Options{}, func(c *config.Server) { c.Lazy = config.NewLazy(config.LazyOn) }, s)
		defer st.stop()
		if got := st.listed(ViewAll, Tool); got != "a__get_issue a__list a__search_tools" {
			t.Errorf("tools: %s", got)
		}
		list := st.text(legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if strings.Contains(list, `"integer"`) || !strings.Contains(list, "a__search_tools") || strings.Contains(list, "outputSchema") {
			t.Errorf("the list is %s", list)
		}
		for args, want := range map[string]string{
			`{"query":"ISSUE"}`:  `"total_matches":1}`,
			`{"query":"a__"}`:    `"total_matches":2}`,
			`{"query":"nobody"}`: `{"tools":[],"total_matches":0}`,
			`{"query":""}`:       `"code":-32602`,
			`{"query":5}`:        `"code":-32602`,
			`{}`:                 `"code":-32602`,
		} {
			for _, c := range []*Caller{legacyCaller(), modernCaller()} {
				a := st.request(c, nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__search_tools","arguments":`+args+`}}`)
				if !strings.Contains(string(a.Bytes()), want) {
					t.Errorf("%s: %s, want %s", args, a.Bytes(), want)
				}
				if modern := strings.Contains(string(a.Bytes()), `"resultType":"complete"`); a.Code == 0 && modern != (c.Era == wire.Modern) {
					t.Errorf("%s: %s", args, a.Bytes())
				}
			}
		}
		found := st.text(legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__search_tools","arguments":{"query":"issue"}}}`)
		if !strings.Contains(found, `"input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}`) {
			t.Errorf("found: %s", found)
		}
		if st.p.Counts()["a"][Tool] != 2 {
			t.Errorf("counts: %v", st.p.Counts())
		}
	})
}

func TestReportsOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, tool("good"), tool("odd.name"), `{"name":"bad","inputSchema":5}`).set(Prompt, `{"name":"p"}`)
		st := newStage(t, Options{}, nil, s)
		defer st.stop()
		st.listed(ViewAll, Tool)
		var got []string
		for _, n := range st.p.Names() {
			got = append(got, fmt.Sprintf("%s %s %s", n.Wire, n.Kind, n.Why))
		}
		want := "good tool |odd.name tool characters|bad tool withheld: its inputSchema is no object|p prompt "
		if strings.Join(got, "|") != want {
			t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
		}
		if got := st.p.ExampleName(serverConfig("a")); got != "a__TOOL" {
			t.Errorf("the example is %s", got)
		}
	})
}

// Without any upstream there is nothing to wait for, and the end of the grace changes nothing.
func TestAProxyWithoutUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, Options{}, nil)
		defer st.stop()
		<-st.p.Settled()
		pass(time.Minute)
		if got := st.text(legacyCaller(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); got != `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` {
			t.Errorf("the list is %s", got)
		}
	})
}
