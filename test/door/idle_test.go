package door

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestABalancerThatEndsIdleConnectionsEndsNone: what takes longer than a balancer's patience stays alive, the calls as well
// as the standing streams.
func TestABalancerThatEndsIdleConnectionsEndsNone(t *testing.T) {
	t.Parallel()
	const idle = 2 * time.Second
	p, rec := one(t, `{"stream_after":"100ms","keep_alive":"100ms"}`)
	relay := testmcp.StartRelay(t, strings.TrimPrefix(p.Base, "http://"), idle)
	url := relay.Through(p.URL)
	old, fresh := testmcp.Connect(t, url, testmcp.Legacy), testmcp.Connect(t, url, testmcp.Modern)
	streams := map[string]*testmcp.Stream{
		"a legacy call": old.Start("tools/call", testmcp.ToolParams("up__hold", `{"text":"x","signal":"late"}`)),
		"a modern call": fresh.Start("tools/call", testmcp.ToolParams("up__hold", `{"text":"x","signal":"late"}`)),
		"GET":           stand(t, old),
		"listen":        fresh.Listen(`{"toolsListChanged":true}`),
	}
	for name, s := range streams {
		if !s.WaitComments(int(2*idle/(100*time.Millisecond))) || s.Over() {
			t.Errorf("%s has ended: %v", name, s.Err())
		}
	}
	rec.Signal("late")
	wantText(t, streams["a legacy call"].Final(), "x")
	wantText(t, streams["a modern call"].Final(), "x")
	change(t, p, "up")
	for _, name := range []string{"GET", "listen"} {
		streams[name].WaitMethod(toolsChanged)
	}
}
