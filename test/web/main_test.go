package web

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

var eras = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}

// start starts the program before these servers. Under the race detector it would wait for a second before it exits.
func start(t *testing.T, settings string, servers map[string]string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, testmcp.Config(settings, servers), append(opts, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))...)
}

// of gives the basic server in one era.
func of(era testmcp.Era) *testmcp.Server {
	s := testmcp.Basic("web")
	s.Era = era
	return s
}

// works calls a tool that only answers and one that reports progress first.
func works(t *testing.T, c *testmcp.Client, server string) {
	t.Helper()
	if a := c.CallTool(server+"__echo", `{"text":"hello"}`); a.Text() != "hello" {
		t.Errorf("%s: a call gives %s", server, a.Raw)
	}
	a := c.Call("tools/call", `{"name":"`+server+`__progress","arguments":{"steps":3},"_meta":{"progressToken":"p"}}`)
	steps := 0
	for _, e := range a.Before {
		if m := e.Message(); m.Method == "notifications/progress" {
			steps++
			if m.Params.At("progress").Int() != steps {
				t.Errorf("%s: step %d is %s", server, steps, e.Data)
			}
		}
	}
	if a.Text() != "3 steps" || steps != 3 {
		t.Errorf("%s: after %d steps a call gives %s", server, steps, a.Raw)
	}
}

// why is what the status page says of a server that does not work.
func why(p *testmcp.Proxy, server string) string {
	for _, u := range p.Status().At("upstreams").Items() {
		if u.At("id").Str() == server {
			return u.At("last_error", "message").Str()
		}
	}
	return ""
}
