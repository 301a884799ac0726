package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
)

// process is what /proc tells of one process.
type process struct {
	pid, parent, group int
	state              byte
	// ticks is the processor time of the process and of those of its children that it has waited for.
	ticks uint64
	// started is when it began, in clock ticks since the system was started: it tells two processes of one number apart.
	started uint64
	pages   int64 // resident
}

var errNotProc = errors.New("this is no line of /proc/PID/stat")

// readProcess reads /proc/PID/stat.
func readProcess(pid int) (process, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, err
	}
	return parseStat(b)
}

// parseStat reads a line of proc_pid_stat(5). The name of the command stands in parentheses and may hold anything.
func parseStat(b []byte) (p process, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return p, errNotProc
	}
	f := strings.Fields(string(b[end+1:])) // f[0] is the third field of the manual
	if len(f) < 22 || len(f[0]) != 1 {
		return p, errNotProc
	}
	p.state = f[0][0]
	p.pid = int(number(&err, strings.TrimSpace(string(b[:open]))))
	p.parent, p.group = int(number(&err, f[1])), int(number(&err, f[2]))
	for _, s := range f[11:15] { // utime, stime, cutime, cstime
		p.ticks += uint64(max(0, number(&err, s)))
	}
	p.started = uint64(max(0, number(&err, f[19])))
	p.pages = number(&err, f[21])
	return p, err
}

func number(err *error, s string) int64 {
	n, e := strconv.ParseInt(s, 10, 64)
	if e != nil {
		*err = errNotProc
	}
	return n
}

// readProcesses gives all processes that can be seen; those that end meanwhile are left out.
func readProcesses() ([]process, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// procIsOurs says whether /proc shows the numbers that this process knows its children by. It does not where it belongs to
// another namespace.
func procIsOurs() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
}

// bootID names the run of the system.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// pipesOf gives the pipes that a process has open, as the links of /proc name them.
func pipesOf(pid int) (pipes []string) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxLooked)
	for _, name := range names {
		if to, err := os.Readlink(dir + name); err == nil && strings.HasPrefix(to, "pipe:") {
			pipes = append(pipes, to)
		}
	}
	return pipes
}

// maxLooked bounds how many descriptors of a process are looked at.
const maxLooked = 4096
