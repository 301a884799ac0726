//go:build unix

package faults

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// slow answers nothing any more once there is a file of the name in its third argument.
var _ = testmcp.Register("slow", func(args []string) *testmcp.Server {
	s := testmcp.Basic("slow")
	s.Era = stdio.Era(args)
	s.Before = func(c *testmcp.Call) bool {
		if _, err := os.Stat(args[2]); err != nil || c.ID == nil {
			return false
		}
		c.Hang()
		return true
	}
	// A child that turns slow is also started again; what lives on says that its lists have changed.
	s.Tools = append(s.Tools, testmcp.SimpleTool("turn", func(c *testmcp.Call) {
		if err := os.WriteFile(args[2], nil, 0o600); err != nil {
			c.ToolError(err.Error())
			return
		}
		if args[1] == "pipe" {
			c.Process().Crash()
		}
		c.Instance().Notify("notifications/tools/list_changed", "")
		c.Text("slow from now on")
	}))
	return s
})

// rush lets twenty clients, ten of each era, come at once and gives how long each of their requests took.
func rush(t *testing.T, p *testmcp.Proxy, check func(names []string) bool) []time.Duration {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	try := func(c *testmcp.Client, method string) testmcp.Answer {
		var a testmcp.Answer
		began := time.Now()
		if method == "initialize" {
			a = c.Initialize()
		} else {
			a = c.Try(method, "{}")
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(began))
		if a.Result() == nil {
			t.Errorf("%s: HTTP %d %s %v", method, a.Status, a.Body, a.Error)
		}
		return a
	}
	for range 10 { // of each era
		for _, era := range stdio.Eras {
			wg.Go(func() {
				c := testmcp.NewClient(t, p.URL, era)
				if era == testmcp.Legacy {
					a := try(c, "initialize")
					c.Opened, c.Session, c.Version = a.Message, a.Header.Get("Mcp-Session-Id"), a.Result().At("protocolVersion").Str()
				}
				var names []string
				for _, tool := range try(c, "tools/list").Result().At("tools").Items() {
					names = append(names, tool.At("name").Str())
				}
				if !check(names) {
					t.Errorf("the tools are %v", names)
				}
				try(c, "prompts/list")
			})
		}
	}
	wg.Wait()
	slices.Sort(took)
	return took
}

// checkQuick verifies that 99 of 100 requests took less than a second.
func checkQuick(t *testing.T, took []time.Duration) {
	t.Helper()
	if p99 := took[(len(took)-1)*99/100]; p99 > time.Second {
		t.Errorf("99 of 100 requests took up to %v", p99)
	}
}

func has(prefix string) func([]string) bool {
	return func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, prefix) })
	}
}

func TestAServerThatIsSlowFromTheStartHoldsUpNoClient(t *testing.T) {
	flag := file(t, "", 0o600)
	good := testmcp.NewRecorder(t)
	entries := map[string]string{"good": good.Entry("basic", nil)}
	for _, way := range stdio.Ways {
		// Nothing that belongs to initialize may be cancelled, and nothing is answered.
		entries[way.Name] = way.Entry(t, testmcp.NewRecorder(t).Allow(testmcp.StrayCancel), "slow", []string{flag})
	}
	p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"500ms"}`, entries))
	p.WaitTool("good__echo")
	checkQuick(t, rush(t, p, has("good__")))
	for _, way := range stdio.Ways {
		if up := p.Metrics().Sum("mcp_proxy_upstream_up", "upstream", way.Name); up != 0 {
			t.Errorf("%s is up", way.Name)
		}
	}
}

func TestAServerThatTurnsSlowKeepsItsLastLists(t *testing.T) {
	flags := t.TempDir()
	good := testmcp.NewRecorder(t)
	entries := map[string]string{"good": good.Entry("basic", nil)}
	for _, way := range stdio.Ways {
		entries[way.Name] = way.Entry(t, testmcp.NewRecorder(t), "slow", []string{filepath.Join(flags, way.Name)},
			`"restart":{"initial_delay":"10ms"}`, `"call_timeout":"1s"`)
	}
	p := testmcp.StartProxy(t, testmcp.Config("", entries))
	c := p.Client(testmcp.Legacy)
	for _, way := range stdio.Ways {
		c.CallTool(way.Name+"__turn", "")
	}
	all := func(names []string) bool {
		return has("good__")(names) && !slices.ContainsFunc(stdio.Ways, func(w stdio.Way) bool { return !has(w.Name + "__turn")(names) })
	}
	checkQuick(t, rush(t, p, all))
	for _, way := range stdio.Ways {
		a := c.CallTool(way.Name+"__echo", `{"text":"x"}`)
		reason := a.Err().At("data", "reason").Str()
		if reason != "timeout" && reason != "unavailable" || !strings.HasPrefix(a.Err().At("message").Str(), way.Name+"::echo: ") {
			t.Errorf("%s: a call of a known tool gives %.300s", way.Name, a.Raw)
		}
	}
	checkQuick(t, rush(t, p, all))
}
