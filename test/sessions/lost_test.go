package sessions

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// A client, or something in front of it, loses the session's id each time. It is told what is missing, and however often it
// begins anew, it costs no more than one session and no process at all.
func TestAClientThatNeverSendsItsSessionBack(t *testing.T) {
	t.Parallel()
	const most = 20
	p, rec := start(t, `{"limits":{"max_sessions":20}}`, `"sharing":"session"`)
	testmcp.Eventually(t, "first listing", func() bool { return rec.Count(testmcp.Is(testmcp.Start)) == 1 })
	c := testmcp.NewClient(t, p.URL, testmcp.Legacy)
	for range 200 {
		if a := c.Initialize(); a.Result() == nil || a.Header.Get("Mcp-Session-Id") == "" {
			t.Fatalf("initialize gives HTTP %d %s", a.Status, a.Body)
		}
		for method, params := range map[string]string{"tools/list": "{}", "tools/call": testmcp.ToolParams("up__echo", `{"text":"x"}`)} {
			a := c.Try(method, params)
			if a.Status != http.StatusBadRequest || !strings.Contains(a.Err().At("message").Str(), "Mcp-Session-Id") {
				t.Fatalf("%s without the id gives HTTP %d %s", method, a.Status, a.Body)
			}
		}
	}
	if n := p.Metrics().Sum("mcp_proxy_sessions", "era", "legacy"); n > most {
		t.Errorf("%v sessions are live", n)
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != 1 {
		t.Errorf("%d processes were started", n)
	}
	echoes(t, p.Client(testmcp.Legacy), "a client that keeps its id")
}
