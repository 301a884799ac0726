package testmcp

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Stop ends the program with SIGTERM and fails the test unless it exits with 0 in time and leaves no process.
func (p *Proxy) Stop() {
	p.t.Helper()
	if why := p.finish(); why != "" {
		p.t.Errorf("%s; its log:\n%s", why, p.tail(30))
	}
}

// Kill ends the program with SIGKILL. What it leaves behind is killed too and gives no complaint.
func (p *Proxy) Kill() {
	p.t.Helper()
	p.note()
	killPID(p.PID())
	<-p.exited
	p.ended = true
	p.leftovers()
}

// KillOnly ends the program with SIGKILL and gives what was below it, so that a test can watch what becomes of it.
func (p *Proxy) KillOnly() []int {
	p.t.Helper()
	p.note()
	killPID(p.PID())
	<-p.exited
	p.ended = true
	return p.seen
}

// WaitExit waits for the program to end by itself and gives its exit code.
func (p *Proxy) WaitExit() int {
	p.t.Helper()
	select {
	case <-p.exited:
		p.ended = true
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(Patience):
		p.t.Fatalf("the program did not exit within %v", Patience)
		return 0
	}
}

// Terminate sends SIGTERM and waits for nothing.
func (p *Proxy) Terminate() {
	p.t.Helper()
	p.note()
	check(p.t, terminate(p.cmd.Process))
}

func (p *Proxy) cleanup() {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	p.Stop()
	if p.t.Failed() {
		p.t.Logf("the log of %s:\n%s", p, p.tail(60))
	}
}

// note remembers what is below the program now, for what leaves it later.
func (p *Proxy) note() { p.seen = append(p.seen, Descendants(p.PID())...) }

// finish stops the program and says what went wrong.
func (p *Proxy) finish() string {
	if p.ended {
		return p.leftovers()
	}
	select {
	case <-p.exited:
		p.ended = true
		return fmt.Sprintf("the program had exited by itself with %d", p.cmd.ProcessState.ExitCode())
	default:
	}
	p.note()
	_ = terminate(p.cmd.Process)
	began := time.Now()
	late := time.NewTimer(stopLimit)
	defer late.Stop()
	select {
	case <-p.exited:
	case <-late.C:
		killGroup(p.PID())
		<-p.exited
		p.ended = true
		return strings.TrimSuffix(fmt.Sprintf("the program did not exit within %v of SIGTERM; %s", stopLimit, p.leftovers()), "; ")
	}
	p.ended = true
	why := p.leftovers()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		why = strings.TrimPrefix(fmt.Sprintf("%s; exit code %d, %v after SIGTERM", why, code, time.Since(began).Round(time.Millisecond)), "; ")
	}
	return why
}

// leftovers kills and names what is still alive of all that was seen below the program or carries its mark.
func (p *Proxy) leftovers() string {
	find := func() []int {
		alive := append(slices.Clone(p.seen), marked(p.mark)...)
		alive = slices.DeleteFunc(alive, func(pid int) bool { return !Alive(pid) })
		slices.Sort(alive)
		return slices.Compact(alive)
	}
	// The last of a process may be seen for a moment after its SIGKILL.
	if poll(time.Second, func() bool { return len(find()) == 0 }) {
		p.seen = nil
		return ""
	}
	var left []string
	for _, pid := range find() {
		left = append(left, fmt.Sprintf("%d (%s)", pid, clip(commandLine(pid), 80)))
		killPID(pid)
	}
	p.seen = nil
	return "the program left processes alive: " + strings.Join(left, ", ")
}
