package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a supervisor may send to the first process of a container.
var passedOn = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

// asInit does the duties of the first process of a container, where this is it: it runs this program again as its child,
// passes signals on, and reaps whoever loses its parent. The code is that of the child; with it the container ends. The proxy
// itself must not be the first process: reaping everybody would take the status of its own children away from it.
func asInit() (code int, done bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	child, err := again()
	if err != nil {
		return fail(fmt.Errorf("starting the proxy below the first process: %w", err)), true
	}
	go func() {
		for s := range signals {
			_ = syscall.Kill(child, s.(syscall.Signal))
		}
	}()
	return reap(child), true
}

// again starts this program once more with the same arguments, variables and streams. It gets a process group of its own,
// so that a signal of the terminal reaches it once: directly where the terminal is its own, else through its parent.
func again() (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		signal.Ignore(syscall.SIGTTOU) // taking the terminal from the background would stop the child
		sys.Foreground, sys.Ctty = true, 0
	}
	return syscall.ForkExec(self, os.Args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: sys})
}

// reap waits for everybody until the child has ended, and gives its exit code.
func reap(child int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR || err == nil && pid != child:
		case err != nil:
			return exitError
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}
