package callers

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var sharings = []string{"shared", "session", "call"}

// TestEachSeesAndCallsOnlyTheirOwn: two people with credentials of their own on one server whose lists depend on them, and
// one without any, in all eras and ways to share connections.
func TestEachSeesAndCallsOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	watches := map[string]*watch{}
	for _, e := range eras {
		for _, sharing := range sharings {
			h, w := serve(t, e.era, testmcp.HTTPOptions{})
			id := e.name + "-" + sharing
			servers[id] = h.Entry(`"forward_caller_auth":true`, `"sharing":"`+sharing+`"`, `"instances":8`)
			watches[id] = w
		}
	}
	p := start(t, "", servers)
	for _, e := range eras {
		t.Run(e.name+" clients", func(t *testing.T) {
			t.Parallel()
			a, b, nobody := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob), client(t, p.URL, e.era)
			var all, anns, bobs []string
			for id := range servers {
				all = append(all, id+"__common")
				anns, bobs = append(anns, id+"__of-ann"), append(bobs, id+"__of-bob")
			}
			for id := range servers {
				own(t, own(t, a, id+"__of-ann"), id+"__common")
				own(t, b, id+"__of-bob")
			}
			wantTools(t, nobody, all...)
			wantTools(t, a, slices.Concat(all, anns)...)
			wantTools(t, b, slices.Concat(all, bobs)...)
			wantTools(t, a, slices.Concat(all, anns)...)
			for id := range servers {
				theirOwn(t, id, a, b, nobody)
			}
		})
	}
	t.Cleanup(func() {
		for _, w := range watches {
			w.wantUnmixed(t)
		}
	})
}

// theirOwn calls, reads and completes what is everybody's and what is Ann's.
func theirOwn(t *testing.T, id string, a, b, nobody *testmcp.Client) {
	t.Helper()
	for _, c := range []struct {
		c    *testmcp.Client
		name string
	}{{a, "ann"}, {b, "bob"}, {nobody, ""}} {
		if got, _ := caller(c.c.CallTool(id+"__common", "{}")); got != c.name {
			t.Errorf("%s: a call of %q arrives as one of %q", id, c.name, got)
		}
		got := c.c.Call("prompts/get", `{"name":"`+id+`__common"}`).Result().At("messages", 0, "content", "text").Str()
		if got != c.name {
			t.Errorf("%s: prompts/get of %q arrives as one of %q", id, c.name, got)
		}
		got = c.c.Call("completion/complete", `{"ref":{"type":"ref/prompt","name":"`+id+`__common"},"argument":{"name":"x","value":""}}`).Result().At("completion", "values", 0).Str()
		if got != c.name {
			t.Errorf("%s: completion/complete of %q arrives as one of %q", id, c.name, got)
		}
	}
	if got, _ := caller(a.CallTool(id+"__of-ann", "{}")); got != "ann" {
		t.Errorf("%s: Ann's own tool is called by %q", id, got)
	}
	for _, c := range []*testmcp.Client{b, nobody} {
		hidden, absent := c.CallTool(id+"__of-ann", "{}"), c.CallTool(id+"__of-eve", "{}")
		if hidden.Code() != -32602 || strings.ReplaceAll(hidden.Err().String(), "of-ann", "of-eve") != absent.Err().String() {
			t.Errorf("%s: what is Ann's is answered %s, what is not there %s", id, hidden.Err(), absent.Err())
		}
	}
}

// TestNobodyReadsWhatOnlyAnothersListShows, neither by its own name nor by the qualified one.
func TestNobodyReadsWhatOnlyAnothersListShows(t *testing.T) {
	t.Parallel()
	for _, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			h, _ := serve(t, e.era, testmcp.HTTPOptions{})
			other := testmcp.NewRecorder(t)
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`), "other": other.Entry("basic", nil)})
			for _, ce := range eras {
				a, b := client(t, p.URL, ce.era, "Authorization", ann), client(t, p.URL, ce.era, "Authorization", bob)
				own(t, a, "up__of-ann")
				own(t, b, "up__of-bob")
				if got := a.Call("resources/read", `{"uri":"note://of-ann"}`).Result().At("contents", 0, "text").Str(); got != "ann" {
					t.Errorf("%s client: Ann's own note is read by %q", ce.name, got)
				}
				hidden, absent := b.Call("resources/read", `{"uri":"note://of-ann"}`), b.Call("resources/read", `{"uri":"note://of-eve"}`)
				if hidden.Err() == nil || strings.ReplaceAll(hidden.Err().String(), "of-ann", "of-eve") != absent.Err().String() {
					t.Errorf("%s client: what is Ann's is answered %s, what is not there %s", ce.name, hidden.Raw, absent.Raw)
				}
			}
		})
	}
}

// TestCredentialsNeverMeetOnAConnection: 50 clients with ten credentials between them call at once.
func TestCredentialsNeverMeetOnAConnection(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	var watches []*watch
	for _, sharing := range sharings {
		h, w := serve(t, testmcp.Legacy, testmcp.HTTPOptions{})
		servers[sharing] = h.Entry(`"forward_caller_auth":true`, `"sharing":"`+sharing+`"`, `"instances":60`)
		watches = append(watches, w)
	}
	p := start(t, "", servers)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprintf("person%d", i%10)
			c := client(t, p.URL, eras[i%2].era, "Authorization", "Bearer token-of-"+name)
			for _, sharing := range sharings {
				own(t, c, sharing+"__of-"+name)
			}
			for _, sharing := range slices.Concat(sharings, sharings) {
				if got, _ := caller(c.CallTool(sharing+"__of-"+name, "{}")); got != name {
					t.Errorf("%s: a call of %s arrives as one of %q", sharing, name, got)
				}
			}
			if e := eras[i%2]; e.era == testmcp.Legacy {
				c.Delete()
			}
		})
	}
	wg.Wait()
	for _, w := range watches {
		w.wantUnmixed(t)
	}
}

// TestListsOfOneCallerArePagedForThatCallerAlone: a cursor of one is worth nothing to another.
func TestListsOfOneCallerArePagedForThatCallerAlone(t *testing.T) {
	t.Parallel()
	srv := personal(testmcp.Both)
	srv.On["tools/list"] = func(c *testmcp.Call) {
		var items []string
		for i := range 1200 {
			items = append(items, fmt.Sprintf(`{"name":"t%04d-%s","inputSchema":{"type":"object"}}`, i, who(c.Header.Get("Authorization"))))
		}
		c.Result(`{"tools":[` + strings.Join(items, ",") + `]` + fresh(c) + `}`)
	}
	p := start(t, "", map[string]string{"up": testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{}).Entry(`"forward_caller_auth":true`)})
	for _, e := range eras {
		a, b := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob)
		names := own(t, a, "up__t0000-ann").ToolNames()
		own(t, b, "up__t0000-bob")
		if len(names) != 1200 || names[0] != "up__t0000-ann" || names[1199] != "up__t1199-ann" {
			t.Errorf("%s: %d tools, the first %q", e.name, len(names), names[:min(1, len(names))])
		}
		first := a.Call("tools/list", "{}").Result()
		if e.era == testmcp.Modern && first.At("cacheScope").Str() != "private" {
			t.Errorf("a list of one caller may be cached for all: %s", first.At("cacheScope"))
		}
		if stolen := b.Call("tools/list", `{"cursor":`+first.At("nextCursor").String()+`}`); stolen.Code() != -32602 {
			t.Errorf("%s: a cursor of Ann's gives Bob %.200s", e.name, stolen.Raw)
		}
	}
}

// TestOneCallersChangesAreToldToNobodyElse: a server announces a change on the connection of one caller.
func TestOneCallersChangesAreToldToNobodyElse(t *testing.T) {
	t.Parallel()
	for _, up := range eras {
		t.Run(up.name+" server", func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			more := map[string]string{}
			srv := personal(up.era)
			srv.On["tools/list"] = func(c *testmcp.Call) {
				mu.Lock()
				extra := more[who(c.Header.Get("Authorization"))]
				mu.Unlock()
				c.Result(`{"tools":[` + definitions(c, `{"name":%q,"inputSchema":{"type":"object"}}`) + extra + `]` + fresh(c) + `}`)
			}
			h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`)})
			for i, e := range eras {
				a, b := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob)
				newsA, newsB := standing(t, own(t, a, "up__of-ann")), standing(t, own(t, b, "up__of-bob"))
				extra := fmt.Sprintf("extra%d", i)
				mu.Lock()
				more["ann"] += `,{"name":"` + extra + `","inputSchema":{"type":"object"}}`
				mu.Unlock()
				h.Instance().Notify("notifications/tools/list_changed", "{}")
				newsA.WaitMethod("notifications/tools/list_changed")
				if got := a.ToolNames(); !slices.Contains(got, "up__"+extra) {
					t.Errorf("%s client: Ann's list is %q", e.name, got)
				}
				// What Bob hears next is something else, so he has not been told of this.
				mu.Lock()
				more["bob"] += `,{"name":"` + extra + `","inputSchema":{"type":"object"}}`
				mu.Unlock()
				h.Instance().Notify("notifications/tools/list_changed", "{}")
				newsB.WaitMethod("notifications/tools/list_changed")
				told := 0
				for _, ev := range newsB.Events() {
					if ev.Message().Method == "notifications/tools/list_changed" {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%s client: Bob was told of %d changes, want his own", e.name, told)
				}
				newsA.Close()
				newsB.Close()
			}
		})
	}
}

// standing lists, and opens the stream on which a client hears of changes.
func standing(t *testing.T, c *testmcp.Client) *testmcp.Stream {
	t.Helper()
	c.ToolNames()
	if c.Era == testmcp.Modern {
		s := c.Listen(`{"toolsListChanged":true}`)
		s.WaitMethod("notifications/subscriptions/acknowledged")
		return s
	}
	s := c.Get("")
	if s.Status != 200 {
		t.Fatalf("the standing stream: HTTP %d", s.Status)
	}
	return s
}
