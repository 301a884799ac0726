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
	long := strings.Repeat("A schema that explains itself at length. ", 50)
	var list strings.Builder
	for i := range manyTools {
		if i > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, `{"name":"tool%04d","inputSchema":{"type":"object","properties":{"p":{"type":"string","description":%q}}}}`, i, long)
	}
	modern := ""
	if stdio.Era(args) == testmcp.Modern {
		modern = `"resultType":"complete","ttlMs":0,"cacheScope":"private",`
	}
	s := testmcp.Basic("crowd")
	s.Era = stdio.Era(args)
	s.On = map[string]testmcp.Handler{
		"tools/list": func(c *testmcp.Call) {
			sendRaw(c, args[1], `{"jsonrpc":"2.0","id":`+string(c.ID)+`,"result":{`+modern+`"tools":[`+list.String()+`]}}`)
		},
		"tools/call": func(c *testmcp.Call) { c.Text(c.Params.At("name").Str()) },
	}
	return s
})

func TestAListOfTwoMegabytesIsListedInFull(t *testing.T) {
	for _, way := range stdio.Ways {
		t.Run(way.Name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"1m"}`, map[string]string{"up": way.Entry(t, rec, "crowd", nil)}))
			for name, era := range stdio.Eras {
				c := p.Client(era)
				list := allPages(t, c)
				schemas := strings.Count(list, strings.Repeat("A schema that explains itself at length. ", 50)+`"}}}`)
				if n := strings.Count(list, `"name":"up__tool`); n != manyTools || schemas != manyTools {
					t.Fatalf("%s client: %d tools with %d schemas, want %d: %.300s", name, n, schemas, manyTools, list)
				}
				if got := c.CallTool("up__tool1029", "").Text(); got != "tool1029" {
					t.Errorf("%s client: the last tool gives %q", name, got)
				}
			}
		})
	}
}

// allPages gives the bytes of all pages of the list of tools.
func allPages(t *testing.T, c *testmcp.Client) string {
	t.Helper()
	all := ""
	for params := "{}"; params != ""; {
		page := string(rawRequest(t, c, "tools/list", params))
		all += page
		params = ""
		if _, next, found := strings.Cut(page, `"nextCursor":"`); found {
			cursor, _, _ := strings.Cut(next, `"`)
			params = `{"cursor":"` + cursor + `"}`
		}
	}
	return all
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
