//go:build unix

package faults

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

func TestOneGoodServerAmongAllKindsOfBadOnes(t *testing.T) {
	t.Parallel()
	all := faults(t)
	good := testmcp.NewRecorder(t)
	entries := map[string]string{"good": good.Entry("basic", nil)}
	for id, f := range all {
		entries[id] = f.entry
	}
	p := testmcp.StartProxy(t, testmcp.Config(`{"startup_grace":"1s"}`, entries))
	p.WaitTool("good__echo")
	for name, era := range stdio.Eras {
		began := time.Now()
		c := p.Client(era)
		names := c.ToolNames()
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s client: the lists took %v", name, took)
		}
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "good__") }) {
			t.Errorf("%s client: the tools are %v", name, names)
		}
		if a := c.CallTool("good__echo", `{"text":"x"}`); a.Text() != "x" {
			t.Errorf("%s client: the good one gives %.300s", name, a.Raw)
		}
	}
	for id, f := range all {
		checkTold(t, p, id, f.says)
		// Its own endpoint is there too, with nothing on it.
		if names := testmcp.Connect(t, p.Server(id), testmcp.Legacy).ToolNames(); len(names) != 0 {
			t.Errorf("%s has the tools %v", id, names)
		}
	}
	if status, _ := p.Get("/readyz"); status != 200 {
		t.Errorf("/readyz is %d", status)
	}
}

// checkTold verifies that an upstream in trouble is named with its reason in status, readiness, log and metrics.
func checkTold(t *testing.T, p *testmcp.Proxy, id string, reasons []string) {
	t.Helper()
	tells := func(text string) bool {
		return slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(text, r) })
	}
	testmcp.Eventually(t, id+" to be reported for "+strings.Join(reasons, " or "), func() bool {
		return tells(stdio.UpstreamStatus(p, id).At("last_error", "message").Str())
	})
	if _, ready := p.Ready(); !tells(ready.At("upstreams", id, "last_error", "message").Str()) {
		t.Errorf("readiness says of %s: %s", id, ready.At("upstreams", id))
	}
	if !slices.ContainsFunc(stdio.LogRecords(p, "upstream down"), func(r testmcp.Raw) bool {
		return r.At("upstream").Str() == id && tells(r.At("error").Str())
	}) {
		t.Errorf("the log does not tell what is wrong with %s", id)
	}
	if up := p.Metrics().Find("mcp_proxy_upstream_up", "upstream", id); len(up) != 1 || up[0].Value != 0 {
		t.Errorf("mcp_proxy_upstream_up of %s is %v", id, up)
	}
}

func TestAStrictStartNamesEveryServerThatFailed(t *testing.T) {
	t.Parallel()
	all := faults(t)
	entries := map[string]string{"good": `{"command":"cat","disabled":true}`}
	for _, id := range []string{"refused", "unauthorized", "no-such-file"} {
		entries[id] = all[id].entry
	}
	config := testmcp.Config(`{"startup":"strict","listen":"127.0.0.1:0"}`, entries)
	ran := testmcp.Run(t, map[string]string{"mcp-proxy.json": config}, nil, "serve")
	if ran.Code != 1 {
		t.Errorf("the exit code is %d", ran.Code)
	}
	for id := range entries {
		if id != "good" && !strings.Contains(ran.Stderr, id) {
			t.Errorf("%s is not named:\n%s", id, ran.Stderr)
		}
	}
}
