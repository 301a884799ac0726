package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// widePipe is the size that the pipes of a child are given, so that a large message takes few turns between the two
// processes. The system may refuse it to a user who has many; then the pipe stays as it is.
const widePipe = 256 << 10

func widen(f *os.File) {
	// Not through Fd, which would make the pipe blocking and its deadlines useless.
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, widePipe) })
	}
}
