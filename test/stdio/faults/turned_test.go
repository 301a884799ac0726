//go:build unix

package faults

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// turns are the ways in which a server that was good answers later on, and what a call of its tool is then told.
var turns = map[string]struct {
	answer http.HandlerFunc
	says   string
}{
	"unauthorized": {testmcp.Status(401, "application/json", `{"error":"invalid_token"}`), "401"},
	"forbidden":    {testmcp.Status(403, "text/plain", "no"), "403"},
	"error 500":    {testmcp.Status(500, "text/plain", "oops"), "500"},
	"error 502":    {testmcp.HTML(502), "502"},
	"html":         {testmcp.HTML(200), "text/html"},
	"empty":        {testmcp.Status(200, "application/json", ""), "without a message"},
	"not json":     {testmcp.Status(200, "application/json", "hello"), "not valid"},
	"cut short":    {testmcp.Truncated("application/json", `{"jsonrpc":"2.0",`, 1000), "lost"},
	"resets":       {testmcp.Reset, "lost"},
	"hangs":        {testmcp.Silence, "call_timeout"},
	"holds open":   {testmcp.HoldOpen, "call_timeout"},
}

func TestAKnownToolOfAServerThatTurnsBadGivesAClearError(t *testing.T) {
	for name, turn := range turns {
		for eraName, era := range stdio.Eras {
			t.Run(name+" "+eraName, func(t *testing.T) {
				t.Parallel()
				var bad atomic.Bool
				srv := testmcp.Basic("up")
				srv.Era = era
				h := testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{Before: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
					if bad.Load() && r.Method == http.MethodPost {
						turn.answer(w, r)
						return true
					}
					return false
				}})
				p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": h.Entry(`"call_timeout":"500ms"`)}))
				for _, client := range stdio.Eras {
					c := p.Client(client)
					bad.Store(true)
					checkClear(t, c.CallTool("up__echo", `{"text":"x"}`), turn.says)
					if !has("up__echo")(c.ToolNames()) {
						t.Error("its tools are gone from the list")
					}
					bad.Store(false)
					testmcp.Eventually(t, "recovery", func() bool { return c.CallTool("up__echo", `{"text":"x"}`).Text() == "x" })
				}
			})
		}
	}
}

// checkClear verifies that an error names upstream and tool and tells what is wrong.
func checkClear(t *testing.T, a testmcp.Answer, says string) {
	t.Helper()
	message := a.Err().At("message").Str()
	if a.Status != http.StatusOK || a.Code() != -32603 || !strings.HasPrefix(message, "up::echo: ") || !strings.Contains(message, says) {
		t.Errorf("HTTP %d %.400s, want a word of %q", a.Status, a.Raw, says)
	}
	data := a.Err().At("data")
	if data.At("upstream").Str() != "up" || data.At("request_id").Str() == "" || data.At("reason").Str() == "" {
		t.Errorf("the data of the error are %s", data)
	}
	if a.Took > 5*time.Second {
		t.Errorf("the error came after %v", a.Took)
	}
}

func TestAKnownToolOfAServerThatIsGoneGivesAClearErrorAtOnce(t *testing.T) {
	t.Run("no longer listening", func(t *testing.T) {
		t.Parallel()
		h := testmcp.ServeHTTP(t, testmcp.Basic("up"), testmcp.HTTPOptions{})
		p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": h.Entry(`"restart":{"initial_delay":"100ms","max_delay":"100ms"}`)}))
		gone(t, p, h.Stop, h.Start)
	})
	t.Run("command removed", func(t *testing.T) {
		t.Parallel()
		rec := testmcp.NewRecorder(t)
		command, args, env := rec.Command("basic")
		script := file(t, "#!/bin/sh\nexec "+command+" \"$@\"\n", 0o700)
		entry := stdio.Entry(script, args, env, `"restart":{"initial_delay":"100ms","max_delay":"100ms"}`)
		p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry}))
		hide := func(from, to string) {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		gone(t, p, func() {
			hide(script, script+".away")
			p.Client(testmcp.Legacy).CallTool("up__crash", "")
		}, func() { hide(script+".away", script) })
	})
}

// gone takes the upstream away, looks at what calls are told, and brings it back.
func gone(t *testing.T, p *testmcp.Proxy, leave, come func()) {
	t.Helper()
	clients := []*testmcp.Client{p.Client(testmcp.Legacy), p.Client(testmcp.Modern)}
	leave()
	testmcp.Eventually(t, "failure", func() bool {
		return clients[0].CallTool("up__echo", "").Err().At("data", "reason").Str() == "unavailable"
	})
	for _, c := range clients {
		a := c.CallTool("up__echo", `{"text":"x"}`)
		checkClear(t, a, "")
		if r := a.Err().At("data", "reason").Str(); r != "unavailable" || a.Took > 3*time.Second {
			t.Errorf("the reason is %q, after %v", r, a.Took)
		}
		if !has("up__echo")(c.ToolNames()) {
			t.Error("its tools are gone from the list")
		}
	}
	come()
	for _, c := range clients { // the same sessions go on
		testmcp.Eventually(t, "recovery", func() bool { return c.CallTool("up__echo", `{"text":"x"}`).Text() == "x" })
	}
}
