package upstream

import (
	"os"

	"golang.org/x/sys/unix"
)

// waitExit returns when the process has ended, without reaping it, so that its number stays taken.
func waitExit(p *os.Process) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}
