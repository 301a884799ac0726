package proxy

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestRemarksOnWhatFitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, `{"name":"find","inputSchema":{"type":"object","properties":{"path":{}}}}`, tool("free")).set(Prompt, `{"name":"review"}`)
		st := newStage(t, Options{}, func(c *config.Server) {
			c.ToolPolicy = config.Policy{Expose: []string{"f*", "fnid"}, Deny: []string{"delet_*", "free"}}
			c.PromptPolicy = config.Policy{Deny: []string{"reviews"}}
			c.Tools = map[string]config.ToolOverride{"find": {Arguments: []config.ArgumentOverride{fixed("pth", "1"), fixed("path", "1")}}, "findd": {}, "free": {Arguments: []config.ArgumentOverride{byDefault("any", "1")}}}
		}, s)
		defer st.stop()
		st.listed(ViewAll, Tool)
		want := []string{
			`tool_policy.expose: nothing of the server is called "fnid"`, `tool_policy.deny: nothing of the server is called "delet_*"`,
			`prompt_policy.deny: nothing of the server is called "reviews"`, `tools: the schema of "find" names no argument "pth"`, `tools: the server has no tool "findd"`,
		}
		if got := st.p.Remarks("a"); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if got := st.p.Remarks("b"); got != nil {
			t.Errorf("of a server that is not there: %q", got)
		}
	})
}
