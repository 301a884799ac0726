package catalog

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Calls of one server run side by side, as many as max_concurrency allows; the others wait for their turn, whoever calls.
func TestCallsRunSideBySideWithinTheirBound(t *testing.T) {
	t.Parallel()
	const calls = 6
	for setting, most := range map[string]int{`"max_concurrency":0`: calls, `"max_concurrency":2`: 2, `"serialize":true`: 1} {
		s := startAll(t, "counter", "", setting)
		for _, k := range kinds {
			t.Run(setting+", "+k.name, func(t *testing.T) {
				t.Parallel()
				rec := s.recs[k.name]
				waiting := func() int { return rec.Count(testmcp.CalledTool("wait")) }
				var all []*testmcp.Pending
				for i := range calls {
					c := s.Client(eras[i%2].era)
					all = append(all, c.Begin("tools/call", testmcp.ToolParams(k.tool("wait"), `{"signal":"all"}`)))
				}
				rec.WaitN(t, most, testmcp.CalledTool("wait"))
				testmcp.Eventually(t, "all calls on their way", func() bool {
					return s.Metrics().Sum("mcp_proxy_requests_in_flight", "upstream", k.name) == calls
				})
				if n := waiting(); n != most {
					t.Errorf("%d calls run at the server, want %d", n, most)
				}
				rec.Signal("all")
				for i, call := range all {
					if got := call.Final(); got.Text() != "waited" {
						t.Errorf("call %d gives %s %v", i, got.Raw, got.Error)
					}
				}
			})
		}
	}
}
