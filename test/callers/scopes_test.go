package callers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// grows is a server whose list depends on its session: a tool "unlock" adds one to it.
func grows() *testmcp.Server {
	s := testmcp.Basic("grows")
	s.Tools = nil
	s.On = map[string]testmcp.Handler{
		"tools/list": func(c *testmcp.Call) {
			more := ""
			if c.AddSession("unlocked", 0) > 0 {
				more = `,{"name":"secret","inputSchema":{"type":"object"}}`
			}
			c.Result(`{"tools":[{"name":"unlock","inputSchema":{"type":"object"}}` + more + `]` + fresh(c) + `}`)
		},
		"tools/call": func(c *testmcp.Call) {
			if c.Params.At("name").Str() == "unlock" {
				c.AddSession("unlocked", 1)
				c.Notify("notifications/tools/list_changed", "{}")
			}
			c.Text(c.Params.At("name").Str())
		},
	}
	return s
}

var _ = testmcp.Register("grows", func([]string) *testmcp.Server {
	s := grows()
	s.Era = testmcp.Legacy
	return s
})

// TestTheListOfASessionIsThatSessionsAlone where the configuration says that it may differ: over a program of its own, and
// over HTTP.
func TestTheListOfASessionIsThatSessionsAlone(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	web := grows()
	web.Era = testmcp.Legacy
	p := start(t, "", map[string]string{
		"child": rec.Entry("grows", nil, `"sharing":"session"`, `"catalog_scope":"session"`),
		"web":   testmcp.ServeHTTP(t, web, testmcp.HTTPOptions{}).Entry(`"sharing":"session"`, `"catalog_scope":"session"`),
	})
	a, b := p.Client(testmcp.Legacy), p.Client(testmcp.Legacy)
	modern := p.Client(testmcp.Modern)
	for _, id := range []string{"child", "web"} {
		news := standing(t, a)
		if got := a.CallTool(id+"__unlock", "{}"); got.Text() != "unlock" {
			t.Fatalf("%s: %s", id, got.Raw)
		}
		news.WaitMethod("notifications/tools/list_changed") // before it lists: who has seen the change is not told of it
		own(t, a, id+"__secret")
		if got := a.CallTool(id+"__secret", "{}"); got.Text() != "secret" {
			t.Errorf("%s: the session's own tool gives %s", id, got.Raw)
		}
		news.Close()
		for _, c := range []*testmcp.Client{b, modern} {
			if names := c.ToolNames(); slices.Contains(names, id+"__secret") {
				t.Errorf("%s: another client sees %q", id, names)
			}
			if got := c.CallTool(id+"__secret", "{}"); got.Code() != -32602 {
				t.Errorf("%s: another client calls it: %s", id, got.Raw)
			}
		}
	}
	a.Delete()
	if got := b.CallTool("child__unlock", "{}"); got.Text() != "unlock" {
		t.Errorf("%s", got.Raw)
	}
	own(t, b, "child__secret")
}

// A program whose lists depend on a header that a reverse proxy sets.
var _ = testmcp.Register("by-header", func([]string) *testmcp.Server {
	s := testmcp.Basic("by-header")
	s.Tools = nil
	name := func(c *testmcp.Call) string { return c.Params.At("_meta", "forwarded_headers", "x-user").Str() }
	s.On = map[string]testmcp.Handler{
		"tools/list": func(c *testmcp.Call) {
			more := ""
			if n := name(c); n != "" {
				more = fmt.Sprintf(`,{"name":"of-%s","inputSchema":{"type":"object"}}`, n)
			}
			c.Result(`{"tools":[{"name":"common","inputSchema":{"type":"object"}}` + more + `]` + fresh(c) + `}`)
		},
		"tools/call": func(c *testmcp.Call) { c.Text(name(c) + "|" + c.Session() + "|1") },
	}
	return s
})

// TestAProgramMayListByAHeaderToo: the one process serves all, and each message says for whom it is.
func TestAProgramMayListByAHeaderToo(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": rec.Entry("by-header", nil, `"forward_headers":["x-user"]`, `"catalog_scope":"principal"`)})
	for _, e := range eras {
		a, b, nobody := client(t, p.URL, e.era, "X-User", "ann"), client(t, p.URL, e.era, "X-User", "bob"), client(t, p.URL, e.era)
		wantTools(t, own(t, a, "up__of-ann"), "up__common", "up__of-ann")
		wantTools(t, own(t, b, "up__of-bob"), "up__common", "up__of-bob")
		wantTools(t, nobody, "up__common")
		if got, _ := caller(a.CallTool("up__of-ann", "{}")); got != "ann" {
			t.Errorf("%s client: Ann's own tool is called by %q", e.name, got)
		}
		if got := b.CallTool("up__of-ann", "{}"); got.Code() != -32602 {
			t.Errorf("%s client: Bob calls it: %s", e.name, got.Raw)
		}
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
}

// TestTheOlderTransportCarriesCredentialsToo.
func TestTheOlderTransportCarriesCredentialsToo(t *testing.T) {
	t.Parallel()
	h := testmcp.ServeSSE(t, personal(testmcp.Legacy), testmcp.SSEOptions{})
	p := start(t, "", map[string]string{"up": h.Entry(`"type":"sse"`, `"forward_caller_auth":true`)})
	for _, e := range eras {
		a, b := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob)
		wantTools(t, own(t, a, "up__of-ann"), "up__common", "up__of-ann")
		wantTools(t, own(t, b, "up__of-bob"), "up__common", "up__of-bob")
		for c, name := range map[*testmcp.Client]string{a: "ann", b: "bob"} {
			if got, _ := caller(c.CallTool("up__common", "{}")); got != name {
				t.Errorf("%s client: a call of %s arrives as one of %q", e.name, name, got)
			}
		}
	}
}

// TestWhatTheConfigurationSaysHoldsForOnesOwnListToo: policies, names, profiles, search, lazy lists and approvals.
func TestWhatTheConfigurationSaysHoldsForOnesOwnListToo(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, testmcp.Both, testmcp.HTTPOptions{})
	entry := func(more ...string) string { return h.Entry(append(more, `"forward_caller_auth":true`)...) }
	p := start(t, `{"profiles":{"few":{"servers":["plain","named"],"tool_policy":{"deny":["of-*"]}},"one":{"servers":["named"]}}}`, map[string]string{
		"plain":  entry(),
		"named":  entry(`"tools":{"of-ann":{"name":"mine","description":"For Ann."}}`, `"tool_prefix":"n_"`),
		"denied": entry(`"tool_policy":{"deny":["of-ann"]}`),
		"lazy":   entry(`"lazy":true`),
		"pinned": entry(`"pin":true`),
	})
	for _, e := range eras {
		a := own(t, client(t, p.URL, e.era, "Authorization", ann), "plain__of-ann")
		own(t, a, "n_mine")
		own(t, a, "lazy__of-ann")
		names := a.ToolNames()
		for name, offered := range map[string]bool{"denied__of-ann": false, "denied__common": true, "n_of-ann": false, "pinned__common": true, "pinned__of-ann": false} {
			if slices.Contains(names, name) != offered {
				t.Errorf("%s client: %s is offered: %v, want %v", e.name, name, !offered, offered)
			}
			if got := a.CallTool(name, "{}"); (got.Code() == -32602) == offered {
				t.Errorf("%s client: %s gives %s", e.name, name, got.Raw)
			}
		}
		if got, _ := caller(a.CallTool("n_mine", "{}")); got != "ann" {
			t.Errorf("%s client: the tool of another name is called by %q", e.name, got)
		}
		found := a.CallTool("lazy__search_tools", `{"query":"ann"}`)
		if !strings.Contains(string(found.Raw), "lazy__of-ann") {
			t.Errorf("%s client: the search finds %s", e.name, found.Raw)
		}
		b := client(t, p.URL, e.era, "Authorization", bob)
		if found := own(t, b, "lazy__of-bob").CallTool("lazy__search_tools", `{"query":"ann"}`); strings.Contains(string(found.Result()), "of-ann") {
			t.Errorf("%s client: Bob finds %s", e.name, found.Raw)
		}
		few := client(t, p.Profile("few"), e.era, "Authorization", ann)
		wantTools(t, few, "plain__common", "n_common")
		if got := few.CallTool("plain__of-ann", "{}"); got.Code() != -32602 {
			t.Errorf("%s client: what the profile denies gives %s", e.name, got.Raw)
		}
		wantTools(t, own(t, client(t, p.Profile("one"), e.era, "Authorization", ann), "n_mine"), "n_common", "n_mine")
	}
}

// TestAServerThatListsForeverHoldsUpNobodyElse: one that answers nobody's own list, and another one.
func TestAServerThatListsForeverHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	srv := personal(testmcp.Both)
	lists := srv.On["tools/list"]
	srv.On["tools/list"] = func(c *testmcp.Call) {
		if c.Header.Get("Authorization") != "" {
			c.Hang()
			return
		}
		lists(c)
	}
	other := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{
		"slow":  testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{}).Entry(`"forward_caller_auth":true`),
		"other": other.Entry("basic", nil),
	})
	for _, e := range eras {
		c := client(t, p.URL, e.era, "Authorization", ann)
		began := time.Now()
		if a := c.CallTool("other__echo", `{"text":"x"}`); a.Result() == nil {
			t.Errorf("%s client: another server's tool gives %s", e.name, a.Raw)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Logf("another server's tool took %v", took) // told, not judged: the machine may be slow
		}
		names := c.ToolNames()
		if !slices.Contains(names, "slow__common") || !slices.Contains(names, "other__echo") {
			t.Errorf("%s client: while one's own list does not come the tools are %q", e.name, names)
		}
	}
}

// TestAReloadKeepsAndTakesAwayCallersLists: a server whose entry changes so that it gets no credentials any more.
func TestAReloadKeepsAndTakesAwayCallersLists(t *testing.T) {
	t.Parallel()
	h, w := serve(t, testmcp.Both, testmcp.HTTPOptions{})
	other := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`)})
	c := own(t, client(t, p.URL, testmcp.Legacy, "Authorization", ann), "up__of-ann")
	p.WriteConfig(testmcp.Config("", map[string]string{"up": h.Entry(`"forward_caller_auth":true`), "other": other.Entry("basic", nil)}))
	p.Reload()
	own(t, c, "other__echo")
	wantContains(t, c, "up__of-ann", true)
	news := standing(t, c)
	p.WriteConfig(testmcp.Config("", map[string]string{"up": h.Entry(), "other": other.Entry("basic", nil)}))
	p.Reload()
	news.WaitMethod("notifications/tools/list_changed")
	news.Close()
	deadline := time.Now().Add(testmcp.Patience)
	for slices.Contains(c.ToolNames(), "up__of-ann") {
		if time.Now().After(deadline) {
			t.Fatal("the list of one caller outlives the entry that allowed it")
		}
	}
	if got, _ := caller(c.CallTool("up__common", "{}")); got != "" {
		t.Errorf("after the reload a call arrives as one of %q", got)
	}
	w.wantUnmixed(t)
}

func wantContains(t *testing.T, c *testmcp.Client, name string, want bool) {
	t.Helper()
	if names := c.ToolNames(); slices.Contains(names, name) != want {
		t.Errorf("%s among %q: want %v", name, names, want)
	}
}
