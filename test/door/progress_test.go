package door

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// rash reports progress under tokens that nobody has given, and goes on after the answer.
func rash(args []string) *testmcp.Server {
	s := server(args)
	s.Tools = append(s.Tools, testmcp.SimpleTool("rash", func(c *testmcp.Call) {
		c.Notify("notifications/progress", `{"progressToken":"invented","progress":1}`)
		c.Notify("notifications/progress", `{"progressToken":1,"progress":1}`)
		c.Notify("notifications/progress", `{"progress":1}`)
		c.Progress(1, 2, "mine")
		c.Text("x")
		c.Progress(2, 2, "late")
	}))
	return s
}

var _ = testmcp.Register("rash", rash)

// TestProgressThatBelongsToNobodyReachesNobody: a client sees progress under the token that it gave, in its own spelling,
// and nothing else; one that gave none sees none.
func TestProgressThatBelongsToNobodyReachesNobody(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	for _, era := range []string{"legacy", "modern"} {
		servers["child-"+era] = testmcp.NewRecorder(t).Entry("rash", []string{era})
		servers["web-"+era] = testmcp.ServeHTTP(t, rash([]string{era}), testmcp.HTTPOptions{}).Entry()
	}
	p := start(t, "", servers)
	for _, e := range eras {
		c := p.Client(e.era)
		for name := range servers {
			for _, token := range []string{`"tok-1"`, `7`, `0`, `""`, ``} {
				t.Run(e.name+", "+name+", "+token, func(t *testing.T) {
					meta, want := "", 0
					if token != "" {
						meta, want = `,"_meta":{"progressToken":`+token+`}`, 1
					}
					a := c.Call("tools/call", `{"name":"`+name+`__rash","arguments":{}`+meta+`}`)
					wantText(t, a, "x")
					seen := messages(a.Before)
					if len(seen) != want {
						t.Errorf("the client sees %v", seen)
					}
					for _, m := range seen {
						if m.Params.At("message").Str() != "mine" || string(m.Params.At("progressToken")) != token {
							t.Errorf("the client sees %s", m.Raw)
						}
					}
				})
			}
		}
	}
	if n := dropped(p); n == 0 {
		t.Error("what was dropped is not counted")
	}
}
