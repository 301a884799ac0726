package catalog

import (
	"net/http"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = behaviour("counter", func() *testmcp.Server { return testmcp.Basic("counter") })

// counted calls the counter n times and gives the last answer: how many calls this connection has seen, and how many the
// server has in all.
func counted(c *testmcp.Client, k kind, n int) string {
	text := ""
	for range n {
		text = c.CallTool(k.tool("count"), "").Text()
	}
	return text
}

func isGoodbye(r testmcp.Record) bool {
	return r.Kind == testmcp.Deleted || r.Kind == testmcp.Exit || r.Kind == testmcp.Closed
}

func TestEachSessionHasItsOwnConnectionWhereTheServerIsNotShared(t *testing.T) {
	t.Parallel()
	s := startAll(t, "counter", "", `"sharing":"session"`)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			if k.name == "web-new" {
				t.Skip("a stateless server has no connections to tell apart")
			}
			rec := s.recs[k.name]
			starts := rec.Count(testmcp.Received("initialize")) + rec.Count(testmcp.Received("server/discover"))
			a, b := s.Client(testmcp.Legacy), s.Client(testmcp.Legacy)
			a.ToolNames()
			if n := rec.Count(testmcp.Received("initialize")) + rec.Count(testmcp.Received("server/discover")); n != starts {
				t.Errorf("%d connections were made before the first call", n-starts)
			}
			total := map[bool]string{true: "3 of 3", false: "3 of 6"}
			isPipe := len(rec.Live()) > 0
			counted(a, k, 2)
			counted(b, k, 3)
			if got := counted(a, k, 1); got != total[isPipe] {
				t.Errorf("the first session counts %q, want %q", got, total[isPipe])
			}
			if got := counted(b, k, 1); got[0] != '4' {
				t.Errorf("the second session counts %q, want 4", got)
			}
			before := rec.Count(isGoodbye)
			if status := a.Delete(); status/100 != 2 {
				t.Errorf("the end of a session is answered with HTTP %d", status)
			}
			rec.WaitN(t, before+1, isGoodbye)
			if isPipe {
				rec.WaitFor(t, "end of one child", func() bool { return len(rec.Live()) == 2 })
			}
			if got := counted(b, k, 1); got[0] != '5' {
				t.Errorf("after the end of the other session this one counts %q, want 5", got)
			}
			if status := a.Try("tools/list", "{}").Status; status != http.StatusNotFound {
				t.Errorf("the session that has ended is answered with HTTP %d", status)
			}
		})
	}
}

func TestASharedServerCountsForEverybody(t *testing.T) {
	t.Parallel()
	s := startAll(t, "counter", "")
	for _, k := range kinds {
		a, b, c := s.Client(testmcp.Legacy), s.Client(testmcp.Legacy), s.Client(testmcp.Modern)
		counted(a, k, 3)
		counted(c, k, 1)
		want := "7 of 7"
		if k.name == "web-new" {
			want = "1 of 7" // each request is a conversation of its own
		}
		if got := counted(b, k, 3); got != want {
			t.Errorf("%s counts %q, want %q", k.name, got, want)
		}
	}
}

func TestCallersWithoutASessionShareByWhoTheyAre(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, testmcp.Config(`{"auth":{"tokens":[{"name":"ann","token":"token-of-ann"},{"name":"ben","token":"token-of-ben"}]}}`,
		map[string]string{"pipe-old": rec.Entry("counter", nil, `"sharing":"session"`)}))
	client := func(token string, era testmcp.Era) *testmcp.Client {
		c := testmcp.NewClient(t, p.URL, era)
		c.Header.Set("Authorization", "Bearer "+token)
		return c.Open()
	}
	k := kinds[0]
	ann, again, ben := client("token-of-ann", testmcp.Modern), client("token-of-ann", testmcp.Modern), client("token-of-ben", testmcp.Modern)
	counted(ann, k, 2)
	counted(ben, k, 1)
	for who, tt := range map[string]struct {
		c    *testmcp.Client
		want string
	}{"ann, from another place": {again, "3 of 3"}, "ben": {ben, "2 of 2"}, "a session of ann": {client("token-of-ann", testmcp.Legacy), "1 of 1"}} {
		if got := counted(tt.c, k, 1); got != tt.want {
			t.Errorf("%s counts %q, want %q", who, got, tt.want)
		}
	}
}

func TestACallerWhoIsNobodyGetsAConnectionForOneCall(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := start(t, testmcp.Config("", map[string]string{"pipe-old": rec.Entry("counter", nil, `"sharing":"session"`)}))
	c := p.Client(testmcp.Modern)
	for range 2 {
		if got := counted(c, kinds[0], 1); got != "1 of 1" {
			t.Errorf("counts %q, want a new server each time", got)
		}
	}
	rec.WaitFor(t, "end of both children", func() bool { return len(rec.Live()) == 1 && rec.Count(testmcp.Is(testmcp.Exit)) == 2 })
}
