package process

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
)

// whereWeAre is the run of the system, and whether /proc can be believed.
var whereWeAre = sync.OnceValues(func() (boot string, ok bool) {
	boot = bootID()
	return boot, boot != "" && procIsOurs()
})

// recordOf describes a process that this one has started and not reaped, so that its number is its own.
func recordOf(pid int) (r childRecord, ok bool) {
	boot, ok := whereWeAre()
	if !ok {
		return r, false
	}
	p, err := readProcess(pid)
	return childRecord{PID: pid, Started: p.started, Boot: boot}, err == nil
}

// isHere says that the record is of this run of the system.
func (r *childRecord) isHere() bool {
	boot, ok := whereWeAre()
	return ok && r.Boot == boot
}

// lives says whether something is left of the recorded child: itself, or others of its group. A group keeps the number of
// its first process while it has members, but the number alone proves nothing: one of them must have the child's pipes.
func (r *childRecord) lives() bool {
	if !r.isHere() || r.PID <= 1 {
		return false
	}
	if now, err := readProcess(r.PID); err == nil {
		return now.started == r.Started
	}
	all, _ := readProcesses()
	return slices.ContainsFunc(all, func(p process) bool {
		return p.group == r.PID && p.started >= r.Started && r.shares(pipesOf(p.pid))
	})
}

// pipeNames names pipes as /proc does.
func pipeNames(files ...*os.File) (names []string) {
	for _, f := range files {
		var st syscall.Stat_t
		if raw, err := f.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { err = syscall.Fstat(int(fd), &st) })
			if err == nil {
				names = append(names, fmt.Sprintf("pipe:[%d]", st.Ino))
			}
		}
	}
	return names
}
