package stdioserve

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// late answers the handshake when the test says so.
var _ = testmcp.Register("late", func([]string) *testmcp.Server {
	s := testmcp.Basic("late")
	s.On = map[string]testmcp.Handler{"initialize": testmcp.After("up", nil), "server/discover": testmcp.After("up", nil)}
	return s
})

func toolNames(list testmcp.Message) (out []string) {
	for _, tool := range list.Result().At("tools").Items() {
		out = append(out, tool.At("name").Str())
	}
	return out
}

func TestListsWaitForServersThatStart(t *testing.T) {
	for _, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			rec := testmcp.NewRecorder(t)
			c := testmcp.StartStdio(t, e.era, testmcp.Config(`{"startup_grace":"1m"}`, map[string]string{"late": rec.Entry("late", nil)})).Open()
			id := c.Start("tools/list", "")
			rec.Wait(t, testmcp.Is(testmcp.In)) // the server is being asked
			if e.era == testmcp.Legacy {
				c.Call("ping", "") // what needs no server is answered meanwhile
			}
			silent(t, c, id)
			rec.Signal("up")
			if got := toolNames(c.Final(id)); !slices.Contains(got, "late__echo") {
				t.Errorf("listed are %v", got)
			}
			leaves(t, c)
		})
	}
}

func TestListsWaitNoLongerThanTheGrace(t *testing.T) {
	rec := testmcp.NewRecorder(t)
	c := testmcp.StartStdio(t, testmcp.Legacy, testmcp.Config(`{"startup_grace":"200ms"}`, map[string]string{"late": rec.Entry("late", nil)})).Open()
	if got := toolNames(c.Call("tools/list", "")); len(got) != 0 {
		t.Errorf("listed are %v, and the server has not come", got)
	}
	rec.Signal("up")
	c.Wait("announcement", method("notifications/tools/list_changed"))
	if got := toolNames(c.Call("tools/list", "")); !slices.Contains(got, "late__echo") {
		t.Errorf("listed are then %v", got)
	}
	leaves(t, c)
}

func TestStrictStartEndsTheConversation(t *testing.T) {
	c := testmcp.StartStdio(t, testmcp.Legacy, testmcp.Config(`{"startup":"strict"}`, map[string]string{"gone": `{"command":"/nonexistent/server"}`}))
	testmcp.Eventually(t, "end of the program", func() bool { _, err := c.ExitCode(); return err == nil })
	if code, _ := c.ExitCode(); code != 1 || !strings.Contains(c.Stderr(), "gone") {
		t.Errorf("exit code %d, stderr %s", code, c.Stderr())
	}
}

// TestClosedStdout lets a client go that only closes the other end of our stdout.
func TestClosedStdout(t *testing.T) {
	for _, w := range []string{"own servers", "bridge"} {
		t.Run(w, func(t *testing.T) {
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, one(rec, ""))
			args := []string{"stdio", "--config", p.Config, "--log-level", "error"}
			if w == "bridge" {
				args = []string{"stdio", "--url", p.URL}
			}
			cmd := exec.Command(testmcp.Binary(t), args...)
			cmd.Env = []string{"HOME=" + t.TempDir()}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = stdout.Close()
			_, _ = stdin.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}` + "\n"))
			if err := cmd.Wait(); err != nil {
				t.Errorf("the program ended with %v", err)
			}
			_ = stdin.Close()
			rec.WaitFor(t, "end of all servers but the proxy's", func() bool { return len(rec.Live()) == 1 })
		})
	}
}
