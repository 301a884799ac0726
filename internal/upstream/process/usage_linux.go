package process

import (
	"os"
	"strconv"
	"time"
)

// Measures says that the processes of children can be looked at here.
func Measures() bool {
	_, ok := whereWeAre()
	return ok
}

// ticksPerSecond is the unit of processor times in /proc; it is the same on all systems that Go knows.
const ticksPerSecond = 100

// loads looks once at all processes and adds up those of each child.
func loads(children []*Child) map[*Child]Load {
	out := map[*Child]Load{}
	if len(children) == 0 {
		return out
	}
	all, _ := readProcesses()
	parents := make(map[int]int, len(all))
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	roots := map[int]*Child{}
	for _, c := range children {
		roots[c.PID()] = c
	}
	pageSize := int64(os.Getpagesize())
	for _, p := range all {
		c := owner(p, parents, roots)
		if c == nil {
			continue
		}
		l := out[c]
		l.cpu += time.Duration(p.ticks) * (time.Second / ticksPerSecond)
		if p.state != 'Z' {
			l.Processes++
			l.Files += openFiles(p.pid)
			l.Memory += p.pages * pageSize
		}
		out[c] = l
	}
	return out
}

// owner finds the child that a process belongs to: the one whose group it is in, or the nearest above it.
func owner(p process, parents map[int]int, roots map[int]*Child) *Child {
	if c := roots[p.group]; c != nil {
		return c
	}
	pid := p.pid
	for range len(parents) { // the list was not read at one moment, so that it may hold a ring
		if c := roots[pid]; c != nil {
			return c
		}
		next, known := parents[pid]
		if !known {
			return nil
		}
		pid = next
	}
	return nil
}

// openFiles counts the descriptors of a process; zero where it has ended or is somebody else's.
func openFiles(pid int) int {
	d, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return len(names)
}
