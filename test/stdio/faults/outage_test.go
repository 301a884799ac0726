package faults

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// A server that is down for a moment, or for longer, loses none of its tools in the lists, and nobody is told that they have
// changed; its calls fail at once, by name, until it is back.
func TestAnOutageTakesNoToolsAway(t *testing.T) {
	for _, pipe := range []bool{true, false} {
		for name, era := range stdio.Eras {
			kind := map[bool]string{true: "child", false: "web"}[pipe]
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				var entry string
				var web *testmcp.HTTPServer
				if pipe {
					entry = rec.Entry("basic", nil, `"protocol":"`+name+`"`, `"restart":{"initial_delay":"2s"}`)
				} else {
					s := testmcp.Basic("up")
					s.Era = era
					web = testmcp.ServeHTTP(t, s, testmcp.HTTPOptions{Recorder: rec})
					entry = web.Entry(`"restart":{"initial_delay":"2s"}`)
				}
				p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry, "other": testmcp.NewRecorder(t).Entry("basic", nil)}))
				c, fresh := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
				news, listen := c.Get(""), fresh.Listen(`{"toolsListChanged":true}`)
				listen.WaitMethod("notifications/subscriptions/acknowledged")
				names := c.ToolNames()

				if pipe {
					c.CallTool("up__crash", "")
				} else {
					web.Stop()
				}
				down := func() bool {
					a := c.CallTool("up__echo", `{"text":"x"}`)
					if a.Err() == nil || !strings.HasPrefix(a.Err().At("message").Str(), "up::echo: ") {
						return false
					}
					return a.Err().At("data", "reason").Str() == "unavailable"
				}
				testmcp.Eventually(t, "clear error", down)
				for _, client := range []*testmcp.Client{c, fresh} {
					if now := client.ToolNames(); !slices.Equal(now, names) {
						t.Errorf("while the server is down %q are listed, before %q", now, names)
					}
				}
				if !pipe {
					web.Start()
				}
				testmcp.Eventually(t, "call that works again", func() bool {
					return c.CallTool("up__echo", `{"text":"back"}`).Text() == "back"
				})
				// What is really new is told, and is the first that is.
				c.CallTool("other__change", "")
				for what, s := range map[string]*testmcp.Stream{"GET": news, "listen": listen} {
					s.WaitMethod("notifications/tools/list_changed")
					n := 0
					for _, e := range s.Events() {
						if strings.HasSuffix(e.Message().Method, "list_changed") {
							n++
						}
					}
					if n != 1 {
						t.Errorf("%s was told of %d changes", what, n)
					}
				}
			})
		}
	}
}
