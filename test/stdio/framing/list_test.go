package framing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

const manyTools = 1030

// crowd has a list of tools of more than two megabytes, on one page.
var _ = testmcp.Register("crowd", func(args []string) *testmcp.Server {
	s := &testmcp.Server{Name: "crowd", Era: stdio.Era(args)}
	long := strings.Repeat("A schema that explains itself at length. ", 50)
	for i := range manyTools {
		s.Tools = append(s.Tools, testmcp.Tool{
			Definition: fmt.Sprintf(`{"name":"tool%04d","inputSchema":{"type":"object","properties":{"p":{"type":"string","description":%q}}}}`, i, long),
			Handle:     func(c *testmcp.Call) { c.Text(c.Params.At("name").Str()) },
		})
	}
	return s
})

func TestAListOfTwoMegabytesIsListedInFull(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": way.Entry(t, rec, "crowd", nil)}))
			for name, era := range stdio.Eras {
				c := p.Client(era)
				tools := c.List("tools/list", "tools")
				if len(tools) != manyTools {
					t.Fatalf("%s client: %d tools, want %d", name, len(tools), manyTools)
				}
				last := tools[manyTools-1]
				if last.At("name").Str() != "up__tool1029" || len(last.At("inputSchema")) < 2000 {
					t.Errorf("%s client: the last tool is %.200s", name, last)
				}
				if got := c.CallTool("up__tool1029", "").Text(); got != "tool1029" {
					t.Errorf("%s client: the last tool gives %q", name, got)
				}
			}
		})
	}
}

func TestAListOverTheLimitIsAFailureAndNoEmptyList(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec, good := testmcp.NewRecorder(t), testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config(smallLimits, map[string]string{
				"up": way.Entry(t, rec, "crowd", nil), "good": good.Entry("basic", nil),
			}))
			st := stdio.UpstreamStatus(p, "up")
			if st.At("last_error", "stage").Str() != "list" || !strings.Contains(st.At("last_error", "message").Str(), "max_frame_bytes") {
				t.Errorf("status says %s", st)
			}
			logged := p.WaitLog("max_frame_bytes")
			if testmcp.Raw(logged).At("upstream").Str() != "up" {
				t.Errorf("the log does not name the upstream: %s", logged)
			}
			names := p.Client(testmcp.Modern).ToolNames()
			if len(names) == 0 || !strings.HasPrefix(names[0], "good__") {
				t.Errorf("the other upstream's tools are not listed: %v", names)
			}
		})
	}
}
