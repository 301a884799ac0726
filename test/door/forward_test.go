package door

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestNamedHeadersOfClientsReachUpstreams: over HTTP as headers, over stdio in _meta, and nothing besides them.
func TestNamedHeadersOfClientsReachUpstreams(t *testing.T) {
	t.Parallel()
	servers := map[string]string{}
	recs := make([]*testmcp.Recorder, len(places))
	for i, pl := range places {
		recs[i] = testmcp.NewRecorder(t)
		servers[fmt.Sprintf("up%d", i)] = pl.entry(t, recs[i], `"forward_headers":["x-tenant","X-None"]`)
	}
	p := start(t, "", servers)
	for _, e := range eras {
		c := p.Client(e.era)
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				before := recs[i].Count(testmcp.CalledTool("echo"))
				params := `{"name":"` + fmt.Sprintf("up%d__echo", i) + `","arguments":{},"_meta":{"forwarded_headers":{"x-tenant":"of the client"}}}`
				if pl.web {
					params = testmcp.ToolParams(fmt.Sprintf("up%d__echo", i), "{}")
				}
				post(c, c.Body("1", "tools/call", params), "tools/call", params, "X-Tenant", "t1", "X-Other", "o1", "Cookie", "s=1")
				seen := recs[i].WaitN(t, before+1, testmcp.CalledTool("echo"))[before]
				if pl.web {
					recs[i].Wait(t, func(r testmcp.Record) bool { return r.Header.Get("X-Tenant") == "t1" })
					if recs[i].Count(func(r testmcp.Record) bool { return r.Header.Get("X-Other")+r.Header.Get("Cookie") != "" }) > 0 {
						t.Error("the upstream saw headers that are not named")
					}
					return
				}
				if raw := string(seen.Frame); strings.Count(raw, `"forwarded_headers"`) != 1 || !strings.Contains(raw, `"forwarded_headers":{"x-tenant":"t1"}`) {
					t.Errorf("the upstream saw %s", raw)
				}
			})
		}
	}
}
