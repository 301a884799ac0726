package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	goleak.VerifyTestMain(m, goleak.Cleanup(testmcp.Cleanup))
}

var eras = map[string]testmcp.Era{"legacy": testmcp.Legacy, "modern": testmcp.Modern}

// agents are raw entries by name.
type agents map[string]string

// config makes a configuration of them; settings is the raw object under "proxy".
func (a agents) config(settings string) string {
	if settings == "" {
		settings = "{}"
	}
	entries := map[string]json.RawMessage{}
	for name, e := range a {
		entries[name] = json.RawMessage(e)
	}
	b, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return `{"mcpServers": {}, "agents": ` + string(b) + `, "proxy": ` + settings + `}`
}

func start(t *testing.T, config string, opts ...testmcp.ProxyOption) *testmcp.Proxy {
	t.Helper()
	return testmcp.StartProxy(t, config, append(opts, testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))...)
}

// shell is an agent that runs a script; more are raw members of its entry.
func shell(script, more string) string {
	return fmt.Sprintf(`{"kind": "command", "description": "runs a script", "command": "/bin/sh", "args": ["-c", %s, "sh"]%s}`, testmcp.Quote(script), more)
}

func input(text string) string { return `{"input":` + testmcp.Quote(text) + `}` }

// wantText fails where a call is not answered with this text.
func wantText(t *testing.T, a testmcp.Answer, text string, isError bool) {
	t.Helper()
	if a.Text() != text || a.IsError() != isError || string(a.Result().At("content", 1)) != "" {
		t.Errorf("it answers %s, not %q", a.Raw, text)
	}
}

// wantFault fails where a call is not answered with isError and a text that has all of these parts.
func wantFault(t *testing.T, a testmcp.Answer, parts ...string) {
	t.Helper()
	if !a.IsError() {
		t.Fatalf("it answers %s", a.Raw)
	}
	for _, p := range parts {
		if !strings.Contains(a.Text(), p) {
			t.Errorf("the fault %q does not say %q", a.Text(), p)
		}
	}
}

// pidIn waits for a number in a file.
func pidIn(t *testing.T, path string) (pid int) {
	t.Helper()
	testmcp.Eventually(t, "a process in "+filepath.Base(path), func() bool {
		b, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	return pid
}

func wantGone(t *testing.T, what string, pid int) {
	t.Helper()
	testmcp.Eventually(t, "the end of "+what, func() bool { return !testmcp.Alive(pid) })
}
