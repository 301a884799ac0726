//go:build unix

package faults

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

var lists = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
}

// checkEmpty verifies that a proxy without upstreams is a proper server that offers nothing.
func checkEmpty(t *testing.T, p *testmcp.Proxy) {
	t.Helper()
	for name, era := range stdio.Eras {
		c := p.Client(era)
		for method, member := range lists {
			a := c.Call(method, "{}")
			if string(a.Result().At(member)) != "[]" {
				t.Errorf("%s client: %s gives %s", name, method, a.Raw)
			}
		}
		if a := c.CallTool("any__tool", ""); a.Code() != -32602 {
			t.Errorf("%s client: a call gives %s", name, a.Raw)
		}
	}
	for _, page := range []string{"/healthz", "/readyz", "/metrics", "/", "/api/v1/status"} {
		if status, body := p.Get(page); status != 200 {
			t.Errorf("%s is %d: %.200s", page, status, body)
		}
	}
}

func TestNoServersAreNoError(t *testing.T) {
	for name, config := range map[string]string{
		"no entries":   `{"mcpServers":{}}`,
		"all disabled": `{"mcpServers":{"a":{"command":"cat","disabled":true}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkEmpty(t, testmcp.StartProxy(t, config))
		})
	}
}

func TestServersThatComeOneByOneAreAnnounced(t *testing.T) {
	t.Parallel()
	ids := []string{"one", "two", "three"}
	up := map[string]*testmcp.HTTPServer{}
	entries := map[string]string{}
	for i, id := range ids {
		srv := testmcp.Basic(id)
		srv.Era = []testmcp.Era{testmcp.Legacy, testmcp.Modern, testmcp.Both}[i]
		up[id] = testmcp.ServeHTTP(t, srv, testmcp.HTTPOptions{})
		entries[id] = up[id].Entry(`"restart":{"initial_delay":"100ms","max_delay":"200ms"}`)
		up[id].Stop()
	}
	p := testmcp.StartProxy(t, testmcp.Config("", entries))
	checkEmpty(t, p)

	legacy, modern := p.Client(testmcp.Legacy), p.Client(testmcp.Modern)
	news := []*testmcp.Stream{legacy.Get(""), modern.Listen(`{"toolsListChanged":true}`)}
	modernReady(t, news[1])
	for i, id := range ids {
		before := []int{announced(news[0]), announced(news[1])}
		up[id].Start()
		for j, c := range []*testmcp.Client{legacy, modern} {
			testmcp.Eventually(t, "announcement of "+id, func() bool { return announced(news[j]) > before[j] })
			names := c.ToolNames()
			for _, seen := range ids[:i+1] {
				if !has(seen + "__echo")(names) {
					t.Errorf("after the announcement %s is not listed: %v", seen, names)
				}
			}
			if slices.ContainsFunc(ids[i+1:], func(later string) bool { return has(later)(names) }) {
				t.Errorf("what has not come is listed: %v", names)
			}
			if a := c.CallTool(id+"__echo", `{"text":"x"}`); a.Text() != "x" {
				t.Errorf("%s gives %.300s", id, a.Raw)
			}
		}
	}
}

func modernReady(t *testing.T, s *testmcp.Stream) {
	t.Helper()
	if m := s.WaitMethod("notifications/subscriptions/acknowledged"); !strings.Contains(string(m.Params), "toolsListChanged") {
		t.Errorf("the subscription is acknowledged with %s", m.Params)
	}
}

// announced counts the announcements of changed tools on a stream.
func announced(s *testmcp.Stream) int {
	n := 0
	for _, e := range s.Events() {
		if e.Message().Method == "notifications/tools/list_changed" {
			n++
		}
	}
	return n
}
