package sessions

import (
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Clients that each had a process of their own go away and never say so, as most do. However many there are, there are
// never more processes than configured, and in the end nothing of them is left.
func TestAbandonedSessionsLeaveNoProcesses(t *testing.T) {
	t.Parallel()
	const clients, at, most = 200, 10, 25
	p, rec := start(t, `{"limits":{"max_slots":25,"max_slots_per_principal":25},"sessions":{"idle_timeout":"1s","resume_window":"100ms"}}`,
		`"sharing":"session"`)
	holds := func() [4]int {
		m := p.Metrics()
		return [4]int{len(rec.Live()), int(m.Sum("mcp_proxy_upstream_slots")), int(m.Sum("mcp_proxy_sessions")), int(m.Sum("mcp_proxy_streams"))}
	}
	testmcp.Eventually(t, "end of the first listing", func() bool { return rec.Count(testmcp.Is(testmcp.Start)) > 0 })
	before := holds()

	var mu sync.Mutex
	served, refused, peak := 0, 0, 0
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for range clients / at {
				a := visit(t, p)
				mu.Lock()
				peak = max(peak, len(rec.Live()))
				switch message := a.Err().At("message").Str(); {
				case a.Text() == "hello":
					served++
				case a.Err().At("data", "reason").Str() == "overloaded" && strings.HasPrefix(message, "up::echo: ") && strings.Contains(message, "max_slots"):
					refused++
				default:
					t.Errorf("a call gives HTTP %d %s %v", a.Status, a.Raw, a.Error)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if peak > most+before[0] {
		t.Errorf("there were %d processes, %d may be", peak, most+before[0])
	}
	if served < most {
		t.Errorf("of %d clients %d were served", clients, served)
	}
	t.Logf("%d clients were served and %d refused, with %d processes at most", served, refused, peak)
	testmcp.Eventually(t, "end of all that belonged to clients", func() bool { return holds() == before })
	if n := len(testmcp.Descendants(p.PID())); n != before[0] {
		t.Errorf("%d processes are below the program, %d before", n, before[0])
	}
	c := p.Client(testmcp.Legacy)
	echoes(t, c, "a client afterwards")
	c.Delete()
	testmcp.Eventually(t, "end of what belonged to a client that said so", func() bool { return holds() == before })
}

// visit opens a session, lists, calls once, leaves a stream open for a moment and goes away.
func visit(t *testing.T, p *testmcp.Proxy) testmcp.Answer {
	c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	defer c.Reconnect()
	a := c.Initialize()
	c.Opened, c.Session = a.Message, a.Header.Get("Mcp-Session-Id")
	c.Notify("notifications/initialized", "")
	stream := c.Get("")
	defer stream.Close()
	c.Try("tools/list", "{}")
	return c.Try("tools/call", testmcp.ToolParams("up__echo", `{"text":"hello"}`))
}
