package bridge

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

var _ = testmcp.Register("no-logging", func([]string) *testmcp.Server {
	s := testmcp.Basic("no-logging")
	s.Era, s.Capabilities = testmcp.Legacy, `{"tools":{}}`
	return s
})

var _ = testmcp.Register("breaks-on-levels", func([]string) *testmcp.Server {
	s := testmcp.Basic("breaks-on-levels")
	s.Era = testmcp.Legacy
	s.On = map[string]testmcp.Handler{"logging/setLevel": testmcp.Errors(-32601, "method not found")}
	return s
})

// logged calls a tool that logs at this level and says whether the client was told.
func logged(t *testing.T, c *testmcp.Client, tool, level string) bool {
	t.Helper()
	a := c.CallTool(tool, `{"level":"`+level+`"}`)
	equal(t, tool, a.Text(), "logged")
	for _, e := range a.Before {
		if m := e.Message(); m.Method == "notifications/message" {
			equal(t, "the level", m.Params.At("level").Str(), level)
			return true
		}
	}
	return false
}

// The level of a session is its own, whatever others want, and servers that know no levels or break on them cost nobody
// anything. Servers are told the most verbose level that anybody wants, those that start later too.
func TestEachClientGetsTheLevelsItAskedFor(t *testing.T) {
	t.Parallel()
	rec := map[string]*testmcp.Recorder{}
	servers := map[string]string{}
	for _, k := range kinds {
		servers[k.name], rec[k.name] = k.entry(t, "asker")
	}
	for _, name := range []string{"no-logging", "breaks-on-levels"} {
		rec[name] = testmcp.NewRecorder(t)
		servers[name] = rec[name].Entry(name, nil)
	}
	p := start(t, testmcp.Config("", servers))
	verbose, terse, silent := connect(t, p, testmcp.Legacy, nil), connect(t, p, testmcp.Legacy, nil), connect(t, p, testmcp.Legacy, nil)
	for c, level := range map[*testmcp.Client]string{verbose: "debug", terse: "error"} {
		equal(t, level, c.Call("logging/setLevel", `{"level":"`+level+`"}`).Result().String(), "{}")
	}
	equal(t, "a level that is none: code", silent.Call("logging/setLevel", `{"level":"loud"}`).Code(), -32602)
	for _, k := range kinds {
		tool := k.name + "__log"
		equal(t, k.name+": info for debug", logged(t, verbose, tool, "info"), true)
		equal(t, k.name+": debug for debug", logged(t, verbose, tool, "debug"), true)
		equal(t, k.name+": info for error", logged(t, terse, tool, "info"), false)
		equal(t, k.name+": alert for error", logged(t, terse, tool, "alert"), true)
		equal(t, k.name+": alert for nothing", logged(t, silent, tool, "alert"), false)
	}
	for _, name := range []string{pipeOld.name, webOld.name, "breaks-on-levels"} {
		rec[name].WaitFor(t, "the level debug", func() bool {
			levels := rec[name].Find(testmcp.Received("logging/setLevel"))
			return len(levels) > 0 && levels[len(levels)-1].Frame.At("params", "level").Str() == "debug"
		})
	}
	equal(t, "levels for a server without logging", rec["no-logging"].Count(testmcp.Received("logging/setLevel")), 0)
	for _, name := range []string{pipeNew.name, webNew.name} {
		equal(t, "levels for "+name, rec[name].Count(testmcp.Received("logging/setLevel")), 0)
	}
	verbose.CallTool("pipe-old__crash", "")
	rec["pipe-old"].WaitFor(t, "the level after a restart", func() bool {
		all := rec["pipe-old"].All()
		started := false
		for i := len(all) - 1; i >= 0 && !started; i-- {
			if started = all[i].Kind == testmcp.Start; !started && all[i].Kind == testmcp.In && all[i].Method == "logging/setLevel" {
				return true
			}
		}
		return false
	})
}

// A modern client says with each request what it wants to hear.
func TestModernClientsAskForLevelsWithEachRequest(t *testing.T) {
	t.Parallel()
	s := startAll(t, kinds, "asker", "")
	for _, k := range kinds {
		c := connect(t, s.Proxy, testmcp.Modern, nil)
		equal(t, k.name+": nothing asked for", logged(t, c, k.name+"__log", "alert"), false)
		c.LogLevel = "warning"
		equal(t, k.name+": warning for warning", logged(t, c, k.name+"__log", "warning"), true)
		equal(t, k.name+": info for warning", logged(t, c, k.name+"__log", "info"), false)
		c.LogLevel = "loud"
		equal(t, k.name+": for a level that is none", logged(t, c, k.name+"__log", "alert"), false)
		if k.era == testmcp.Legacy {
			levels := s.recs[k.name].WaitN(t, 1, testmcp.Received("logging/setLevel"))
			equal(t, k.name+": level", levels[0].Frame.At("params", "level").Str(), "warning")
			continue
		}
		call := s.recs[k.name].WaitN(t, 2, testmcp.CalledTool("log"))[1]
		equal(t, k.name+": level", call.Frame.At("params", "_meta", "io.modelcontextprotocol/logLevel").Str(), "warning")
	}
}

// On a channel that two calls share nothing says whose a message is: it goes to nobody.
func TestLogMessagesThatCouldBelongToTwoCallsGoToNobody(t *testing.T) {
	t.Parallel()
	for _, k := range sharedChannels {
		p, rec := startOne(t, k, "asker", "")
		a, b := connect(t, p, testmcp.Legacy, nil), connect(t, p, testmcp.Legacy, nil)
		for _, c := range []*testmcp.Client{a, b} {
			c.Call("logging/setLevel", `{"level":"debug"}`)
		}
		held := b.Begin("tools/call", testmcp.ToolParams(k.name+"__wait", `{"signal":"go"}`))
		rec.Wait(t, testmcp.CalledTool("wait"))
		equal(t, k.name+": beside another call", logged(t, a, k.name+"__log", "alert"), false)
		rec.Signal("go")
		for _, e := range held.Final().Before {
			if strings.Contains(string(e.Data), "notifications/message") {
				t.Errorf("%s: the other client got %s", k.name, e.Data)
			}
		}
		equal(t, k.name+": alone", logged(t, a, k.name+"__log", "alert"), true)
	}
}
