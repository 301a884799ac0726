package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The ladder of a stop: stdin is closed first, since that is how the stdio transport ends a server; then the whole
// process group gets SIGTERM, then SIGKILL.
const (
	graceAfterEOF  = 2 * time.Second
	graceAfterTerm = 2 * time.Second
	// drainAfterExit is how long the pipes may be held open by somebody else after the process has gone.
	drainAfterExit = time.Second
	// graceForGroup is how long the rest of the group may take after its leader has gone and it has got SIGTERM.
	graceForGroup = 500 * time.Millisecond
)

// Exited is closed when the process itself has ended. Others of its group may still run.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Gone is closed when nothing is left of the group, and nothing of ours runs for it any more.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Status tells how the process has ended, once it has exited; it is never nil then.
func (c *Child) Status() error { return c.status }

// Succeeded says whether the process has exited with 0, once it has exited.
func (c *Child) Succeeded() bool { return c.cmd.ProcessState != nil && c.cmd.ProcessState.Success() }

// Reap waits for the end of the process, and ends what is left of its group.
func (c *Child) Reap() {
	err := awaitEnd(c.cmd, waitExit)
	c.home.Usage.end(c, c.cmd.ProcessState) // from here on its number may be somebody else's
	c.status = c.exitError(err)
	close(c.exited)
	endGroup(c.cmd.Process)
	c.signals.Lock()
	c.over = true
	c.signals.Unlock()
	c.cgroup.remove()
}

// awaitEnd waits for the end of a process and tells its group, before the process is reaped where seen can wait for that:
// until then its number cannot belong to anybody else.
func awaitEnd(cmd *exec.Cmd, seen func(*os.Process) bool) error {
	before := seen(cmd.Process)
	if before {
		signalGroup(cmd.Process, false)
	}
	err := cmd.Wait()
	if !before {
		signalGroup(cmd.Process, false) // whoever is left of the group keeps its number
	}
	return err
}

func (c *Child) exitError(err error) error {
	if c.cmd.ProcessState == nil {
		return fmt.Errorf("waiting for the process: %w", err)
	}
	switch code := c.cmd.ProcessState.ExitCode(); {
	case c.cgroup.outOfMemory():
		return fmt.Errorf("the process was ended because it ran out of memory (%s)", c.cgroup.limits)
	case code >= 0:
		return fmt.Errorf("the process exited with code %d", code)
	default:
		return fmt.Errorf("the process ended by %s", c.cmd.ProcessState)
	}
}

// Drain lets the streams run dry and waits for all that Go has begun. What the process wrote before its end is still read;
// a process outside the group that holds the pipes is not waited for.
func (c *Child) Drain() {
	timer := time.AfterFunc(drainAfterExit, func() { closeAll(c.Stdout, c.stderr) })
	c.pumps.Wait()
	timer.Stop()
	closeAll(c.Stdout, c.stderr)
}

// Forget takes the process off the lists: nothing of it is left. Nothing may run for it any more.
func (c *Child) Forget() {
	c.home.Brood.remove(c)
	c.drop()
	close(c.gone)
}

// Why gives the reason of the end of stdout: how the process ended and the last it said.
func (c *Child) Why(err error) error {
	select {
	case <-c.exited:
	case <-time.After(drainAfterExit):
		return fmt.Errorf("the process closed its stdout: %w", err)
	}
	c.tail.settle()
	if last := c.tail.Last(3); len(last) > 0 {
		return fmt.Errorf("%w; its last words: %s", c.status, strings.Join(last, " | "))
	}
	return c.status
}

// Stop ends the process, first by the end of its stdin, and waits until it is gone; its second and later callers only
// wait.
func (c *Child) Stop() {
	c.stopOnce.Do(func() {
		// A writer may hold the turn while the child does not read; closing the pipe frees it.
		_ = c.Stdin.Close()
		if !c.within(graceAfterEOF) {
			c.terminate()
		}
	})
	<-c.gone
}

// Terminate ends the process without waiting for what it does at the end of its stdin, and waits until it is gone.
func (c *Child) Terminate() {
	c.terminate()
	<-c.gone
}

// terminate lets the process and all that it has started get SIGTERM, and then SIGKILL.
func (c *Child) terminate() {
	c.signal(false)
	if !c.within(graceAfterTerm) {
		c.Kill()
	}
}

func (c *Child) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}

// Kill ends the process and all that it has started at once. It does not wait.
func (c *Child) Kill() {
	c.signal(true)
	c.cgroup.kill()
}

// signal signals whoever is left of the group.
func (c *Child) signal(kill bool) {
	c.signals.Lock()
	defer c.signals.Unlock()
	if !c.over {
		signalGroup(c.cmd.Process, kill)
	}
}
