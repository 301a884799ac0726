package proxy

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// First use is over with the first whole list of tools, also where another list of the server always fails. While that of
// tools fails, nothing is trusted: it might fail for ever.
func TestAListThatFailsProlongsNoFirstUse(t *testing.T) {
	const fails = `"error":{"code":-32603,"message":"database"}`
	pinned := func(c *config.Server) { c.Pin = config.PinTrust }
	t.Run("another list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := (&server{id: "s"}).tools("a")
			s.on = func(f *wire.Frame, _ io.Writer) (string, bool) { return fails, f.Method == "prompts/list" }
			st := newStage(t, Options{}, pinned, s)
			defer st.stop()
			if got := st.listed(ViewAll, Tool); got != "s__a" {
				t.Errorf("on first use: %s", got)
			}
			s.tools("a", "b")
			st.announced(s, ViewAll)
			if got := st.listed(ViewAll, Tool); got != "s__a" {
				t.Errorf("later: %s", got)
			}
		})
	})
	t.Run("the list of tools", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			script := map[string]string{"": page("2", "a"), "2": fails}
			s := paged(&server{id: "s"}, script)
			st := newStage(t, Options{}, pinned, s)
			defer st.stop()
			if got := st.listed(ViewAll, Tool); got != "" {
				t.Errorf("half of a list: %s", got)
			}
			s.mu.Lock()
			script["2"] = page("", "b")
			s.mu.Unlock()
			st.announced(s, ViewAll)
			if got := st.listed(ViewAll, Tool); got != "s__a s__b" {
				t.Errorf("all of it: %s", got)
			}
		})
	})
}
