package idle

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

func TestMain(m *testing.M) { testmcp.Main(m) }

func state(p *testmcp.Proxy) string { return stdio.UpstreamStatus(p, "up").At("state").Str() }

// kept waits until the catalog of the one server is in the state directory, and gives the path of its file.
func kept(t *testing.T, p *testmcp.Proxy) string {
	t.Helper()
	var found []string
	testmcp.Eventually(t, "a kept catalog", func() bool {
		found, _ = filepath.Glob(filepath.Join(filepath.Dir(p.Config), ".local", "state", "mcp-proxy", "catalog-*.json"))
		return len(found) == 1
	})
	return found[0]
}

func echoes(t *testing.T, c *testmcp.Client) {
	t.Helper()
	if text := c.CallTool("up__echo", `{"text":"hello"}`).Text(); text != "hello" {
		t.Errorf("a call gives %q", text)
	}
}

func TestAnIdleChildIsStoppedAndComesBack(t *testing.T) {
	for _, sharing := range []string{"shared", "session", "call"} {
		t.Run(sharing, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("basic", nil, `"idle_stop":"1s"`, `"sharing":"`+sharing+`"`)}))
			c := p.Client(testmcp.Legacy)
			echoes(t, c)
			names := c.ToolNames()
			rec.WaitFor(t, "no child", func() bool { return len(rec.Live()) == 0 })
			testmcp.Eventually(t, "the state idle", func() bool { return state(p) == "idle" })
			m := p.Metrics()
			if m.Sum("mcp_proxy_upstream_up", "upstream", "up") != 1 || m.Sum("mcp_proxy_upstream_slots", "upstream", "up") != 0 {
				t.Error("an idle server is counted as down, or as connected")
			}
			if code, _ := p.Ready(); code != http.StatusOK {
				t.Errorf("/readyz gives %d", code)
			}
			if now := c.ToolNames(); !slices.Equal(now, names) {
				t.Errorf("%q are listed, before %q", now, names)
			}
			if len(rec.Live()) != 0 {
				t.Error("a list has started the child")
			}
			echoes(t, c)
			if len(stdio.LogRecords(p, "upstream down")) != 0 {
				t.Error("resting is logged as a failure")
			}
			woken := p.Metrics().Sum("mcp_proxy_upstream_restarts_total", "upstream", "up", "reason", "idle")
			if want := 1.0; sharing != "session" && woken != want {
				t.Errorf("%v wakings are counted", woken)
			}
		})
	}
}

func TestALazyServerWaitsForItsFirstCallAfterARestart(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("basic", nil, `"start":"lazy"`)}))
	names := p.Client(testmcp.Legacy).ToolNames()
	if len(names) == 0 {
		t.Fatal("nothing is listed without a catalog")
	}
	kept(t, p)
	p.Restart()
	p.WaitReady()
	starts := rec.Count(testmcp.Is(testmcp.Start))
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		if now := p.Client(era).ToolNames(); !slices.Equal(now, names) {
			t.Errorf("after the restart %q are listed, before %q", now, names)
		}
	}
	if n := rec.Count(testmcp.Is(testmcp.Start)); n != starts || state(p) != "idle" {
		t.Errorf("%d starts without a call, and the state is %s", n-starts, state(p))
	}
	echoes(t, p.Client(testmcp.Legacy))
	if n := rec.Count(testmcp.Is(testmcp.Start)); n <= starts {
		t.Error("the call was answered by nobody")
	}
}

func TestGarbageInTheStateDirectoryIsNoHindrance(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("basic", nil, `"start":"lazy"`)}))
	file := kept(t, p)
	p.Stop()
	if err := os.WriteFile(file, []byte(`{"format":1,"items":[["{`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Restart()
	p.WaitLog("a kept catalog is of no use")
	echoes(t, p.Client(testmcp.Legacy))
}
