package sessions

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestARestartLosesNoSession(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*testmcp.Proxy){"in order": func(*testmcp.Proxy) {}, "after SIGKILL": (*testmcp.Proxy).Kill} {
		t.Run(name, func(t *testing.T) {
			p, _ := start(t, `{"stream_after":"10ms"}`)
			var all []*testmcp.Client
			for _, version := range revisions {
				all = append(all, speaking(t, p.URL, version, answering), speaking(t, p.Server("up"), version))
			}
			deleted := speaking(t, p.URL, testmcp.Rev2511)
			if code := deleted.Delete(); code != http.StatusNoContent {
				t.Errorf("DELETE gives %d", code)
			}
			testmcp.Eventually(t, "list of ended sessions", func() bool { return fileOf(p, "sessions-ended.json") != nil })
			stop(p)
			p.Restart()
			for i, c := range all {
				c.Reconnect()
				if code := status(c); code != http.StatusOK {
					t.Errorf("session %d: HTTP %d", i, code)
				}
				if len(c.ToolNames()) < 5 {
					t.Errorf("session %d lists too little", i)
				}
				stream := c.Get("")
				stream.WaitMethod("notifications/tools/list_changed") // nobody knows what it has missed
				stream.Close()
				if i%2 == 1 {
					continue
				}
				echoes(t, c, c.Version)
				if text := c.CallTool("up__elicit", `{"message":"?"}`).Text(); !testmcp.Raw(text).Has("content", "which") {
					t.Errorf("session %d cannot be asked any more: %q", i, text)
				}
			}
			deleted.Reconnect()
			if code := status(deleted); code != http.StatusNotFound {
				t.Errorf("the session that was deleted: HTTP %d", code)
			}
			if n := p.Metrics().Sum("mcp_proxy_sessions_revived_total"); int(n) != len(all) {
				t.Errorf("%v revivals are counted", n)
			}
		})
	}
}

// fileOf gives what a file in the state directory says about itself; nil where there is none.
func fileOf(p *testmcp.Proxy, name string) os.FileInfo {
	info, err := os.Stat(filepath.Join(filepath.Dir(p.Config), ".local", "state", "mcp-proxy", name))
	if err != nil {
		return nil
	}
	return info
}

func TestTheKeyIsForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "")
	if info := fileOf(p, "session-key.json"); info == nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v", info)
	}
}

func TestWithoutAStateDirectorySessionsEndWithTheProgram(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `{"state_dir":""}`)
	c := p.Client(testmcp.Legacy)
	p.Restart()
	c.Reconnect()
	if code := status(c); code != http.StatusNotFound {
		t.Errorf("HTTP %d", code)
	}
	c.Open()
	echoes(t, c, "a new session")
}

func TestKeysOfTheConfigurationCanBeRotated(t *testing.T) {
	t.Parallel()
	const first, second = `"0123456789abcdef-first-0123456789"`, `"0123456789abcdef-second-0123456789"`
	settings := func(keys string) string { return `{"state_dir":"","sessions":{"keys":[` + keys + `]}}` }
	rec := testmcp.NewRecorder(t)
	servers := map[string]string{"up": rec.Entry("basic", nil)}
	p := testmcp.StartProxy(t, testmcp.Config(settings(first), servers), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	old := p.Client(testmcp.Legacy)
	restart := func(keys string) {
		p.WriteConfig(testmcp.Config(settings(keys), servers))
		p.Restart()
		old.Reconnect()
	}
	restart(second + "," + first)
	if code := status(old); code != http.StatusOK {
		t.Errorf("with both keys: HTTP %d", code)
	}
	young := p.Client(testmcp.Legacy)
	restart(second)
	if code := status(old); code != http.StatusNotFound {
		t.Errorf("without its key: HTTP %d", code)
	}
	young.Reconnect()
	if code := status(young); code != http.StatusOK {
		t.Errorf("one of the new key: HTTP %d", code)
	}
}

// Every session has its own process and finds a fresh one after the restart.
func TestSessionsWithProcessesOfTheirOwnGoOn(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "", `"sharing":"session"`)
	a, b := p.Client(testmcp.Legacy), p.Client(testmcp.Legacy)
	counts := func(c *testmcp.Client, want string) {
		t.Helper()
		if got := c.CallTool("up__count", "").Text(); got != want {
			t.Errorf("the count is %q, want %q", got, want)
		}
	}
	counts(a, "1 of 1")
	counts(a, "2 of 2")
	counts(b, "1 of 1")
	p.Restart()
	a.Reconnect()
	b.Reconnect()
	counts(a, "1 of 1")
	counts(b, "1 of 1")
	counts(a, "2 of 2")
}
