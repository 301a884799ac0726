package upstream

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

var _ = testmcp.Register("glutton", func([]string) *testmcp.Server {
	return &testmcp.Server{Era: testmcp.Legacy, Tools: callTool(func(c *testmcp.Call) {
		var all [][]byte
		for range 1024 {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
		}
		c.Result(`{"content":[],"structuredContent":{"chunks":` + strconv.Itoa(len(all)) + `}}`)
	})}
})

// Where limits can be held, a child that needs more memory is ended and the error says why; elsewhere it is not started.
func TestLimitsAreHeldOrRefused(t *testing.T) {
	cfg := childConfig("glutton")
	cfg.Limits = config.ChildLimits{Memory: 128 << 20, Pids: 500}
	u := startReal(t, newRig(t), cfg)
	if f := u.Status().Failure; f != nil {
		if f.Stage != "start" || !strings.Contains(f.Message, process.ErrNoLimits.Error()) || !(strings.Contains(f.Message, "delegated") || strings.Contains(f.Message, "cgroup v2")) {
			t.Errorf("the failure is %+v", f)
		}
		_, err := u.Acquire(t.Context(), Unit{})
		wantReason(t, err, ReasonUnavailable)
		t.Skipf("limits cannot be held here, and the server is refused: %s", f.Message)
	}
	l := lease(t, u)
	defer l.Release()
	_, err := called(t, u, l)
	if e := wantReason(t, err, ReasonUncertain); !strings.Contains(e.Error(), "ran out of memory (limits.memory 128MiB, limits.pids 500)") {
		t.Errorf("the error is %v", e)
	}
}
