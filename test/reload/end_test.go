package reload

import (
	"net/http"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Within the delay readiness is refused and calls are served still.
func TestTheDelayOfTheEnd(t *testing.T) {
	t.Parallel()
	s := recorders(t, "a")
	p := run(t, s.with(`{"shutdown_delay":"1500ms"}`, "a"))
	c := p.Client(testmcp.Legacy)
	p.Terminate()
	p.WaitLog(`"stopping"`)
	testmcp.Eventually(t, "refusal of readiness", func() bool {
		status, _ := p.Ready()
		return status == http.StatusServiceUnavailable
	})
	if text := c.CallTool("a__echo", `{"text":"x"}`).Text(); text != "x" {
		t.Errorf("a call within the delay gives %q", text)
	}
	if code := p.WaitExit(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

var _ = testmcp.Register("stubborn", func([]string) *testmcp.Server {
	s := testmcp.Basic("stubborn")
	s.Start = func(p *testmcp.Process) { p.IgnoreSIGTERM() }
	s.AtEOF = func(p *testmcp.Process) { p.Hang() }
	return s
})

// The second signal waits for nothing and leaves nothing behind.
func TestTheSecondSignal(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := run(t, testmcp.Config(`{"shutdown_grace":"10m"}`, map[string]string{"up": rec.Entry("stubborn", nil)}))
	p.Client(testmcp.Legacy).Begin("tools/call", testmcp.ToolParams("up__hang", `{}`))
	rec.Wait(t, testmcp.CalledTool("hang"))
	p.Terminate()
	p.WaitLog(`"stopping"`)
	p.Terminate()
	if code := p.WaitExit(); code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	rec.WaitGone(t)
}
