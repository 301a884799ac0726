package process

import (
	"os"
	"strings"
	"syscall"
)

// groupAttr makes the child the root of a process group of its own.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup can only end the process itself on this system.
func signalGroup(p *os.Process, _ bool) { _ = p.Kill() }

func killGroup(int, bool) {}

func groupExists(int) bool { return false }

func endGroup(*os.Process) {}

func executableExts(environ []string) []string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATHEXT="); ok {
			return append([]string{""}, strings.Split(v, ";")...)
		}
	}
	return []string{"", ".exe", ".cmd", ".bat"}
}

func executable(os.FileInfo) bool { return true }
