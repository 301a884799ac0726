package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// pages answers tools/list by the number of the page, which the cursor "page N" names.
func pages(name string, page func(c *testmcp.Call, n int)) struct{} {
	return behaviour(name, func() *testmcp.Server {
		s := testmcp.Basic(name)
		s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
			n := 0
			if at := c.Params.At("cursor").Str(); at != "" {
				_, _ = fmt.Sscanf(at, "page %d", &n)
			}
			page(c, n)
		}}
		return s
	})
}

func tools(names ...string) string {
	var defs []string
	for _, name := range names {
		defs = append(defs, testmcp.SimpleTool(name, nil).Definition)
	}
	return `{"tools":[` + strings.Join(defs, ",") + `]`
}

var (
	_ = pages("pages-loop", func(c *testmcp.Call, _ int) { c.Result(tools("a", "b") + `,"nextCursor":"again"}`) })
	_ = pages("pages-circle", func(c *testmcp.Call, n int) {
		c.Result(tools(fmt.Sprint("t", n)) + fmt.Sprintf(`,"nextCursor":"page %d"}`, (n+1)%3))
	})
	_ = pages("pages-gap", func(c *testmcp.Call, n int) {
		switch n {
		case 0:
			c.Result(tools("a") + `,"nextCursor":"page 1"}`)
		case 1:
			c.Result(`{"tools":[],"nextCursor":"page 2"}`)
		case 2:
			c.Result(tools("b", "a", "c") + `,"nextCursor":""}`)
		}
	})
	// Its cursors are numbers, which the protocol does not have.
	_ = behaviour("pages-number", func() *testmcp.Server {
		s := testmcp.Basic("pages-number")
		s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
			if n := c.Params.At("cursor").Int(); n < 2 {
				c.Result(tools(fmt.Sprint("t", n)) + fmt.Sprintf(`,"nextCursor":%d}`, n+1))
				return
			}
			c.Result(tools("t2") + "}")
		}}
		return s
	})
	_ = pages("pages-null", func(c *testmcp.Call, _ int) { c.Result(tools("a") + `,"nextCursor":null}`) })
	_ = pages("pages-break", func(c *testmcp.Call, n int) {
		if n == 2 {
			c.Error(-32603, "the third page is lost", "")
			return
		}
		c.Result(tools(fmt.Sprint("t", n)) + fmt.Sprintf(`,"nextCursor":"page %d"}`, n+1))
	})
)

func TestListsOfSeveralPagesAreGatheredWhateverTheCursors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		behaviour string
		want      []string
		asked     int
		partial   string // a word of why the list is not whole; empty where it is
	}{
		{"pages-loop", []string{"a", "b"}, 2, ""},
		{"pages-circle", []string{"t0", "t1", "t2"}, 4, ""},
		{"pages-gap", []string{"a", "b", "c"}, 3, ""},
		{"pages-null", []string{"a"}, 1, ""},
		{"pages-number", []string{"t0", "t1", "t2"}, 3, ""},
		{"pages-break", []string{"t0", "t1"}, 3, "the third page is lost"},
	}
	servers, recs := map[string]string{}, map[string]*testmcp.Recorder{}
	for _, tt := range tests {
		for _, era := range []string{"legacy", "modern"} {
			id := tt.behaviour + "-" + era
			recs[id] = testmcp.NewRecorder(t)
			servers[id] = recs[id].Entry(tt.behaviour, []string{era})
		}
	}
	p := start(t, testmcp.Config("", servers))
	status := map[string]testmcp.Raw{}
	for _, u := range p.Status().At("upstreams").Items() {
		status[u.At("id").Str()] = u
	}
	for _, tt := range tests {
		for _, era := range []string{"legacy", "modern"} {
			id := tt.behaviour + "-" + era
			t.Run(id, func(t *testing.T) {
				if got := testmcp.Connect(t, p.Server(id), testmcp.Legacy).ToolNames(); !slices.Equal(got, tt.want) {
					t.Errorf("%q are listed, want %q", got, tt.want)
				}
				if n := recs[id].Count(testmcp.Received("tools/list")); n != tt.asked {
					t.Errorf("%d pages were asked for, want %d", n, tt.asked)
				}
				fault := status[id].At("last_error", "message").Str()
				if tt.partial == "" && fault != "" || !strings.Contains(fault, tt.partial) {
					t.Errorf("the status tells %q, want a word of %q", fault, tt.partial)
				}
				// The other lists are not touched by what becomes of this one.
				if prompts := testmcp.Connect(t, p.Server(id), testmcp.Modern).List("prompts/list", "prompts"); len(prompts) != 1 {
					t.Errorf("%d prompts are listed", len(prompts))
				}
			})
		}
	}
	holds(t, "the log line", p.WaitLog("the third page is lost"), "pages-break")
}

func TestACursorThatNobodyGaveIsRefused(t *testing.T) {
	t.Parallel()
	p, _ := startOne(t, "basic", "")
	for _, e := range eras {
		c := p.Client(e.era)
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
			if a := c.Call(method, `{"cursor":"from-1"}`); a.Code() != -32602 {
				t.Errorf("%s: %s with a foreign cursor is answered %s", e.name, method, a.Raw)
			}
		}
	}
}

var _ = testmcp.Register("pages-endless", func([]string) *testmcp.Server {
	s := testmcp.Basic("endless")
	s.Era, s.Quiet = testmcp.Legacy, true
	s.On = map[string]testmcp.Handler{"tools/list": func(c *testmcp.Call) {
		c.Result(tools("a") + fmt.Sprintf(`,"nextCursor":"%d"}`, c.Instance().Add("pages", 1)))
	}}
	return s
})

func TestAListWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	p := start(t, testmcp.Config("", map[string]string{"one": testmcp.NewRecorder(t).Entry("pages-endless", nil)}), testmcp.WithoutReady())
	testmcp.Eventually(t, "word of too many pages in the status", func() bool {
		return strings.Contains(p.Status().At("upstreams", 0, "last_error", "message").Str(), "pages")
	})
	c := p.Client(testmcp.Modern)
	if got := c.ToolNames(); !slices.Equal(got, []string{"one__a"}) {
		t.Errorf("%q are listed", got)
	}
	if prompts := c.List("prompts/list", "prompts"); len(prompts) != 1 {
		t.Errorf("%d prompts are listed", len(prompts))
	}
	if p.Metrics().Sum("mcp_proxy_limit_exceeded_total") == 0 {
		t.Error("the limit is not counted")
	}
}

// lists are the methods that list, with what they list and what a basic server has of it.
var lists = []struct{ method, member string }{
	{"tools/list", "tools"}, {"prompts/list", "prompts"}, {"resources/list", "resources"}, {"resources/templates/list", "resourceTemplates"},
}

// lacking knows nothing of one list, which it has declared; breaking fails at it.
var (
	_ = testmcp.Register("lacking", func(args []string) *testmcp.Server { return without(args, -32601) })
	_ = testmcp.Register("breaking", func(args []string) *testmcp.Server { return without(args, -32000) })
)

// without is a server that answers one list with an error; its arguments are the era and the method.
func without(args []string, code int) *testmcp.Server {
	s := testmcp.Basic("without")
	s.Era = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}[args[0]]
	s.On = map[string]testmcp.Handler{args[1]: testmcp.Errors(code, "cannot list")}
	return s
}

// A list that a server does not know is empty, and no fault. One that it fails at is a fault that the status tells; the
// other lists are there all the same, and those of other servers.
func TestAServerNeedNotKnowEveryList(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	for _, behaviour := range []string{"lacking", "breaking"} {
		for _, era := range []string{"legacy", "modern"} {
			for _, l := range lists {
				args := []string{era, l.method}
				servers[behaviour+"-"+era+"-"+l.member] = testmcp.NewRecorder(t).Entry(behaviour, args)
				servers[behaviour+"-web-"+era+"-"+l.member] = testmcp.ServeHTTP(t, testmcp.Registered(behaviour, args...), testmcp.HTTPOptions{}).Entry()
			}
		}
	}
	p := start(t, testmcp.Config("", servers))
	status := map[string]testmcp.Raw{}
	for _, u := range p.Status().At("upstreams").Items() {
		status[u.At("id").Str()] = u
	}
	for id := range servers {
		for _, e := range eras {
			c := testmcp.Connect(t, p.Server(id), e.era)
			for _, l := range lists {
				if n := len(c.List(l.method, l.member)); (n == 0) != strings.HasSuffix(id, "-"+l.member) {
					t.Errorf("%s, %s: %s gives %d items", id, e.name, l.method, n)
				}
			}
		}
		fault := status[id].At("last_error", "message").Str()
		if told := strings.Contains(fault, "cannot list"); told != strings.HasPrefix(id, "breaking") {
			t.Errorf("of %s the status tells %q", id, fault)
		}
		if n := p.Metrics().Sum("mcp_proxy_upstream_up", "upstream", id); n != 1 {
			t.Errorf("%s is not up", id)
		}
	}
}
