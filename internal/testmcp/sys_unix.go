//go:build unix

package testmcp

import (
	"os"
	"os/exec"
	"syscall"
)

func endSignals() []os.Signal { return []os.Signal{syscall.SIGTERM, syscall.SIGINT} }

func killSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// pollable gives stdin as a file whose pending read ends when it is closed. Only this process reads from the
// pipe, so making it non-blocking disturbs nobody.
func pollable() *os.File {
	if syscall.SetNonblock(0, true) != nil {
		return os.Stdin
	}
	return os.NewFile(0, "stdin")
}

// detach gives the process a session of its own, out of reach of signals to the old process group.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ownGroup gives the process a group of its own, so that all of it can be killed at once.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func hangUp(p *os.Process) error { return p.Signal(syscall.SIGHUP) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func killPID(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }
