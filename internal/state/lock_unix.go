//go:build unix

package state

import (
	"os"
	"syscall"
)

// lock takes the file for this process; the system gives it back when the process ends, however it ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
