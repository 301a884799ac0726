package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitExit returns when the process has ended, without reaping it, so that its number stays taken. It is false where that
// cannot be waited for.
func waitExit(p *os.Process) bool {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
