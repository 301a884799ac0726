//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// groupAttr makes the child the leader of a process group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup signals everybody in the child's process group. Nobody there is no error.
func signalGroup(p *os.Process, kill bool) { killGroup(p.Pid, kill) }

// killGroup signals everybody in the process group of that number.
func killGroup(group int, kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	if group > 1 { // others mean more than one group
		_ = syscall.Kill(-group, sig)
	}
}

func groupExists(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

// endGroup ends what is left of the group of a process that has been reaped. Its number cannot be taken as long as the
// group has members.
func endGroup(p *os.Process) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < graceForGroup; <-tick.C {
		if !groupExists(p.Pid) {
			return
		}
	}
	signalGroup(p, true)
}

func executableExts([]string) []string { return []string{""} }

func executable(info os.FileInfo) bool { return info.Mode()&0o111 != 0 }
