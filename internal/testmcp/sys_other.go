//go:build !unix

package testmcp

import (
	"os"
	"os/exec"
)

func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

func killSelf() { os.Exit(137) }

func pollable() *os.File { return os.Stdin }

func detach(*exec.Cmd) {}

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) error { return p.Signal(os.Interrupt) }

func hangUp(p *os.Process) error { return p.Signal(os.Interrupt) }

func killGroup(pid int) { killPID(pid) }

func killPID(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
