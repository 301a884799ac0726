package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestTheOwnCgroupIsFound(t *testing.T) {
	const (
		pure   = "36 25 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
		hybrid = "30 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		inside = "36 25 0:30 /box /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	)
	for _, c := range []struct{ mounts, own, want string }{
		{pure, "0::/user.slice/a.service\n", "/sys/fs/cgroup/user.slice/a.service"},
		{pure, "0::/\n", "/sys/fs/cgroup"},
		{hybrid, "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/unified/y"},
		{inside, "0::/box/a\n", "/sys/fs/cgroup/a"},
		{inside, "0::/elsewhere\n", ""},
		{pure, "4:memory:/x\n", ""},
		{"30 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/\n", ""},
		{"", "", ""},
	} {
		got, err := cgroupDir([]byte(c.mounts), []byte(c.own))
		if got != c.want || (c.want == "") != errors.Is(err, ErrNoLimits) {
			t.Errorf("%q in %q: %q, %v; want %q", c.own, c.mounts, got, err, c.want)
		}
	}
}

// fakeCgroups is a directory that looks like a delegated cgroup.
func fakeCgroups(t *testing.T, controllers, enabled string) *cgroups {
	t.Helper()
	dir := t.TempDir()
	put := func(path, text string) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("cgroup.controllers", controllers)
	put("cgroup.subtree_control", enabled)
	put("cgroup.procs", strconv.Itoa(os.Getpid())+"\n2\n")
	return &cgroups{dir: dir, prefix: childPrefix + "1-2-", mkdir: func(dir string, mode fs.FileMode) error {
		err := os.Mkdir(dir, mode)
		for _, f := range []string{"memory.max", "memory.swap.max", "memory.oom.group", "memory.events", "pids.max", "cgroup.procs", "cgroup.kill"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
		}
		return err
	}}
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLimitsAreWrittenToTheChildsCgroup(t *testing.T) {
	g := fakeCgroups(t, "cpu memory pids", "cpu")
	c, err := g.newCgroup(config.ChildLimits{Memory: 64 << 20, Pids: 50})
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "50"} {
		if got := content(t, c.dir, file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if got := content(t, g.dir, "cgroup.subtree_control"); got != "+memory +pids" {
		t.Errorf("passed on is %q", got)
	}
	if got := content(t, g.dir, ownLeaf, "cgroup.procs"); !strings.HasPrefix(got, strconv.Itoa(os.Getpid())) || strings.Contains(got, "\n2") {
		t.Errorf("moved are %q, want this process and nobody else's", got)
	}
	if c.outOfMemory() {
		t.Error("it is out of memory")
	}
	if err := os.WriteFile(filepath.Join(c.dir, "memory.events"), []byte("low 0\nmax 5\noom 1\noom_kill 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !c.outOfMemory() {
		t.Error("it is not out of memory")
	}
	if o, err := g.newCgroup(config.ChildLimits{Pids: 1}); err != nil || o.dir == c.dir {
		t.Errorf("the next one is %+v, %v", o, err)
	}
	c.kill()
	if got := content(t, c.dir, "cgroup.kill"); got != "1" {
		t.Errorf("killed by %q", got)
	}
}

func TestLimitsThatCannotBeHeldAreRefused(t *testing.T) {
	for _, c := range []struct {
		controllers, want string
		limits            config.ChildLimits
	}{
		{"cpu pids", `"memory" is not delegated`, config.ChildLimits{Memory: 1 << 30}},
		{"cpu memory", `"pids" is not delegated`, config.ChildLimits{Memory: 1 << 30, Pids: 5}},
		{"", "not delegated", config.ChildLimits{Pids: 5}},
	} {
		g := fakeCgroups(t, c.controllers, "")
		if cg, err := g.newCgroup(c.limits); !errors.Is(err, ErrNoLimits) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), g.dir) {
			t.Errorf("%+v with %q gives %+v, %v", c.limits, c.controllers, cg, err)
		}
	}
	g := fakeCgroups(t, "memory pids", "memory pids")
	g.mkdir = os.Mkdir // and no files appear in it
	if _, err := g.newCgroup(config.ChildLimits{Memory: 1 << 30}); !errors.Is(err, ErrNoLimits) || !strings.Contains(err.Error(), "memory.max") {
		t.Errorf("without the files of a controller: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(g.dir, childPrefix+"*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// A child begins in its cgroup, and the cgroup goes with all that is in it. This needs a cgroup that can be written to, but no
// controllers.
func TestAChildBeginsInItsCgroup(t *testing.T) {
	g, err := ownCgroups()
	if err != nil {
		t.Skip(err)
	}
	cg, err := g.newCgroup(config.ChildLimits{})
	if err != nil {
		t.Skipf("the cgroup of this test cannot be written to: %v", err)
	}
	cmd := exec.Command("sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & exec cat /proc/self/cgroup")
	entered, err := cg.enter(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer cg.remove()
	out, err := cmd.Output()
	entered()
	if err != nil {
		t.Skipf("this system starts nothing in a cgroup: %v", err)
	}
	if !strings.Contains(string(out), "0::/") || !strings.Contains(string(out), filepath.Base(cg.dir)) {
		t.Errorf("it runs in %s, want %s", out, cg.dir)
	}
	left, err := words(filepath.Join(cg.dir, "cgroup.procs"))
	if err != nil || len(left) != 1 {
		t.Errorf("in the cgroup are %v, %v; want the one that has left the process group", left, err)
	}
	cg.remove()
	if _, err := os.Stat(cg.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup is still there: %v", err)
	}
	for _, pid := range left {
		if n, _ := strconv.Atoi(pid); testmcp.Alive(n) {
			t.Errorf("%s is alive", pid)
		}
	}
}
