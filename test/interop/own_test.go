package interop

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// testOwn puts another proxy before server-everything, which gives each person a process or a session of their own, and
// lets all clients talk at once.
func testOwn(t *testing.T, s stage) {
	own, command, work := s, s.everything(t), t.TempDir()
	var tokens []map[string]any
	for _, c := range talkers {
		tokens = append(tokens, map[string]any{"name": c.name, "token": tokenOf(c.name)})
	}
	binary, err := harness.BuildProxy(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	own.url = startProxy(t, binary, work, configure(t, work, map[string]any{
		"ownchild": map[string]any{"command": command[0], "args": command[1:], "sharing": "session"},
		"ownweb":   map[string]any{"type": "http", "url": s.web, "sharing": "session"},
	}, map[string]any{"auth": map[string]any{"mode": "tokens", "tokens": tokens}}))
	var want []string
	for _, e := range ownErrands("") {
		want = append(want, e.Elicit.Name, e.Page.Name, e.Sample.Name, e.Roots.Name)
	}
	visit := visit{Prompt: "ownchild__simple-prompt", Resource: wanted().Resource}
	first := talkers[0].name
	waitForTools(t, own, planOf(first, tokenOf(first), nil), visit, func(tools []string) []string { return without(tools, want) })
	t.Run("clients", func(t *testing.T) {
		for _, c := range talkers {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				own.talk(t, c.talk, c.protocol, planOf(c.name, tokenOf(c.name), ownErrands(c.name)))
			})
		}
	})
}

func tokenOf(who string) string { return "the token of " + who }
