package testmcp

import (
	"slices"
	"testing"
)

// The kit against the real program.
func TestRealProgram(t *testing.T) {
	one, two := NewRecorder(t), NewRecorder(t)
	web := ServeHTTP(t, Basic("two"), HTTPOptions{Recorder: two})
	p := StartProxy(t, Config("", map[string]string{"one": one.Entry("basic", []string{"one"}), "two": web.Entry()}))
	for _, era := range []Era{Legacy, Modern} {
		c := p.Client(era)
		names := c.ToolNames()
		for _, tool := range []string{"one__echo", "two__echo"} {
			if !slices.Contains(names, tool) {
				t.Errorf("%s is not among %q", tool, names)
			}
			if got := c.CallTool(tool, `{"text":"through"}`).Text(); got != "through" {
				t.Errorf("%s gave %q", tool, got)
			}
		}
	}
	if got := p.Metrics().Sum("mcp_proxy_requests_total", "upstream", "one", "method", "tools/call", "outcome", "ok"); got != 2 {
		t.Errorf("%v calls counted", got)
	}
	if len(p.Status()) == 0 {
		t.Error("no status")
	}
	if got := one.Live(); len(got) != 1 || !slices.Contains(Descendants(p.PID()), got[0]) {
		t.Errorf("alive are %v", got)
	}
}

func TestRealProgramRunsToItsEnd(t *testing.T) {
	ran := Run(t, map[string]string{"mcp.json": `{"mcpServers":{"one":{"comand":"x"}}}`}, nil, "check", "--config", "mcp.json")
	if ran.Code != 1 || ran.Stdout+ran.Stderr == "" {
		t.Errorf("check of a wrong file: %+v", ran)
	}
}
