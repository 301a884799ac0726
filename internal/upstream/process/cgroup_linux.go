package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ownCgroups finds the cgroup of this process once: it moves below it later.
var ownCgroups = sync.OnceValues(func() (*cgroups, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	dir, err := cgroupDir(mounts, own)
	if err != nil {
		return nil, err
	}
	self, err := readProcess(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	// No other process of this run of the system has the same number and start.
	return &cgroups{dir: dir, mkdir: os.Mkdir, prefix: fmt.Sprintf("%s%d-%d-", childPrefix, self.pid, self.started)}, nil
})

// cgroupDir finds the directory of the own cgroup (v2) in what proc_pid_mountinfo(5) and cgroups(7) tell.
func cgroupDir(mounts, own []byte) (string, error) {
	path, found := "", false
	for line := range strings.Lines(string(own)) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			path, found = rest, true
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		// 36 35 98:0 /root /mount/point options optional... - type source options
		before, after, ok := strings.Cut(lines.Text(), " - ")
		f := strings.Fields(before)
		if !ok || !found || len(f) < 6 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, at := f[3], f[4]
		if rel, err := filepath.Rel(root, path); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(at, rel), nil
		}
	}
	return "", fmt.Errorf("%w: they need cgroup v2, and this system has none mounted that holds the proxy", ErrNoLimits)
}

// ownProcesses gives those in the cgroup itself that are this process, below it, or the one that has only started it as the
// first process of a container.
func (g *cgroups) ownProcesses() (ours []int, err error) {
	members, err := words(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	all, err := readProcesses()
	if err != nil {
		return nil, err
	}
	parents := make(map[int]int, len(all))
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	for _, m := range members {
		pid, err := strconv.Atoi(m)
		if err == nil && (isBelow(pid, os.Getpid(), parents) || pid == 1 && os.Getppid() == 1 && sameProgram(1)) {
			ours = append(ours, pid)
		}
	}
	return ours, nil
}

// isBelow says whether a process is the other one or was started by it or by one below it.
func isBelow(pid, above int, parents map[int]int) bool {
	for range len(parents) + 1 {
		if pid == above {
			return true
		}
		next, known := parents[pid]
		if !known {
			return false
		}
		pid = next
	}
	return false
}

// sameProgram says whether a process runs the same program as this one.
func sameProgram(pid int) bool {
	theirs, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return false
	}
	ours, err := os.Readlink("/proc/self/exe")
	return err == nil && ours == theirs
}

// enter lets the command begin in the cgroup, so that nothing of it ever runs outside. done is called once it has been
// started.
func (c *cgroup) enter(cmd *exec.Cmd) (done func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	dir, err := os.Open(c.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLimits, err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return func() { _ = dir.Close() }, nil
}
