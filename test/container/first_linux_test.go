package container

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }

// orphaner starts a process whose parent ends at once.
var _ = testmcp.Register("orphaner", func([]string) *testmcp.Server {
	s := testmcp.Basic("orphaner")
	s.Tools = append(s.Tools, testmcp.SimpleTool("orphan", func(c *testmcp.Call) {
		if err := exec.Command("sh", "-c", "exec sleep 600 >/dev/null 2>&1 </dev/null &").Run(); err != nil {
			c.Text(err.Error())
			return
		}
		c.Text("done")
	}))
	return s
})

// first makes the command the first process of a namespace of its own, with a /proc that shows it.
func first(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
}

func needNamespaces(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/bin/true")
	first(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("this system gives no namespaces: %v %s", err, out)
	}
}

// below gives the children of a process, zombies included, with the state of each.
func below(t *testing.T, parent int) map[int]byte {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]byte{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if len(f) > 1 && f[1] == strconv.Itoa(parent) {
			out[pid] = f[0][0]
		}
	}
	return out
}

// orphan lets a server leave a process behind and gives it and the proxy proper.
func orphan(t *testing.T, p *testmcp.Proxy) (orphan, proper int) {
	t.Helper()
	before := below(t, p.PID())
	if len(before) != 1 {
		t.Fatalf("below the first process are %v, want the proxy alone", before)
	}
	for proper = range before {
	}
	if a := p.Client(testmcp.Modern).CallTool("up__orphan", ""); a.Text() != "done" {
		t.Fatalf("the tool gives %.300s", a.Raw)
	}
	testmcp.Eventually(t, "an orphan", func() bool {
		for pid := range below(t, p.PID()) {
			if pid != proper {
				orphan = pid
			}
		}
		return orphan != 0
	})
	return orphan, proper
}

func TestTheFirstProcessReapsOrphansAndPassesSignalsOn(t *testing.T) {
	needNamespaces(t)
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("orphaner", nil)}), testmcp.WithLaunch(first))
	lost, proper := orphan(t, p)
	if err := syscall.Kill(lost, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testmcp.Eventually(t, "end of the orphan", func() bool {
		return !slices.Contains([]byte("RSDZ"), below(t, p.PID())[lost]) && errors.Is(syscall.Kill(lost, 0), syscall.ESRCH)
	})
	p.Reload() // SIGHUP
	p.WaitLog("the configuration is in force")
	p.Stop() // SIGTERM, and exit code 0
	if testmcp.Alive(proper) {
		t.Error("the proxy lives on without its first process")
	}
}

func TestTheFirstProcessEndsAsTheProxyEnds(t *testing.T) {
	needNamespaces(t)
	// Each has a recorder of its own: processes of two namespaces may have one number.
	start := func() (*testmcp.Proxy, *testmcp.Recorder) {
		rec := testmcp.NewRecorder(t)
		return testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("orphaner", nil)}), testmcp.WithLaunch(first)), rec
	}
	p, _ := start()
	_, proper := orphan(t, p)
	if err := syscall.Kill(proper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := p.WaitExit(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("killed, it exits with %d", code)
	}
	p, rec := start()
	held := p.Client(testmcp.Modern).Begin("tools/call", testmcp.ToolParams("up__hang", ""))
	rec.Wait(t, testmcp.CalledTool("hang"))
	p.Terminate()
	p.WaitLog(`"msg":"stopping"`)
	p.Terminate()
	if code := p.WaitExit(); code != 1 {
		t.Errorf("after a second signal it exits with %d", code)
	}
	_ = held.Final()
	for want, args := range map[int][]string{1: {"serve", "--config", "/no/such/file"}, 2: {"serve", "--no-such-flag"}, 0: {"version"}} {
		cmd := exec.Command(testmcp.Binary(t), args...)
		first(cmd)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%q exits with %d, want %d: %s", args, code, want, out)
		}
	}
}
