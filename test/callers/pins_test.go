package callers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestWhatOneIsOfferedAloneIsApprovedToo: a pinned server that offers Ann something more does not get it past anybody, and
// looks at what it offers everybody do not make it forgotten.
func TestWhatOneIsOfferedAloneIsApprovedToo(t *testing.T) {
	t.Parallel()
	for _, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			h, _ := serve(t, e.era, testmcp.HTTPOptions{})
			p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`, `"pin":true`)})
			approve := func(args ...string) string {
				cmd := exec.Command(testmcp.Binary(t), append([]string{"approve", "--config", p.Config}, args...)...)
				cmd.Env = []string{"HOME=" + filepath.Dir(p.Config), "PATH=" + os.Getenv("PATH")}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v: %s", args, err, out)
				}
				return string(out)
			}
			a, b := client(t, p.URL, e.era, "Authorization", ann), client(t, p.URL, e.era, "Authorization", bob)
			wantTools(t, a, "up__common")
			testmcp.Eventually(t, "Ann's tool among those that wait", func() bool { return strings.Contains(approve("--list"), "of-ann@") })
			if code := a.CallTool("up__of-ann", "{}").Code(); code != -32602 {
				t.Errorf("a call of what nobody has approved gives %d", code)
			}
			before := h.Rec.Count(testmcp.Received("tools/list"))
			testmcp.Eventually(t, "another look", func() bool {
				h.Instance().Notify("notifications/tools/list_changed", "")
				return h.Rec.Count(testmcp.Received("tools/list")) > before
			})
			approve("up", "of-ann")
			own(t, a, "up__of-ann")
			wantTools(t, b, "up__common")
			if got, _ := caller(a.CallTool("up__of-ann", "{}")); got != "ann" {
				t.Errorf("Ann's own tool is called by %q", got)
			}
		})
	}
}
