package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
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

// child is one process and the conversation over its stdin and stdout.
type child struct {
	*pipe
	env    *env
	cmd    *exec.Cmd
	cgroup *cgroup // nil without limits
	stdout *os.File
	stderr *tailLog
	pumps  sync.WaitGroup // the readers of stdout and stderr

	exited chan struct{} // closed when the process itself has ended, before its group is gone
	gone   chan struct{} // closed when it is reaped and nothing of ours runs for it any more
	status error         // how it ended; set before exited is closed

	signals sync.Mutex // orders signals and the end of the group
	over    bool       // nothing is left of the group, and its number may be another's

	deaf     atomic.Bool // it has closed its stdin
	stopOnce sync.Once
	stopping chan struct{}
}

func newChild(e *env) *child {
	return &child{env: e, stderr: newTailLog(e.log, e.count, e.mask), exited: make(chan struct{}), gone: make(chan struct{}), stopping: make(chan struct{})}
}

// startChild starts the command of an upstream in a process group of its own.
func startChild(e *env, cfg *config.Server) (*child, error) {
	c := newChild(e)
	ends, err := c.begin(cfg)
	if err != nil {
		return nil, err
	}
	e.log.Info("child started", zap.Int("pid", c.cmd.Process.Pid), zap.String("command", filepath.Base(cfg.Command)))
	c.stdout = ends[1]
	c.pipe = newPipe(e, ends[0])
	c.pipe.why = c.why
	c.pipe.broken = func(error) { c.kill() }
	c.pipe.deaf = c.turnedDeaf
	c.pumps.Go(func() { c.pipe.run(c.stdout) })
	c.pumps.Go(func() { c.stderr.drain(ends[2]) })
	c.enlist()
	go c.wait(ends[2])
	return c, nil
}

// begin starts the command within its limits and gives our ends of its streams: stdin to write, stdout and stderr to read.
func (c *child) begin(cfg *config.Server) (ends [3]*os.File, err error) {
	if c.cmd, err = command(cfg); err != nil {
		return ends, err
	}
	if c.cgroup, err = limited(cfg.Limits); err != nil {
		return ends, err
	}
	if ends, err = c.launch(); err != nil {
		c.cgroup.remove()
		return ends, startError(cfg, c.cmd, err)
	}
	return ends, nil
}

// enlist lets the process be seen by who measures and by who ends all at once.
func (c *child) enlist() {
	if c.env.brood != nil {
		c.env.brood.add(c)
	}
	c.env.usage.begin(c)
}

// launch starts the process and gives our ends of its streams: stdin to write, stdout and stderr to read.
func (c *child) launch() (ends [3]*os.File, err error) {
	if ends, err = openPipes(c.cmd); err != nil {
		return ends, err
	}
	pipes := pipeNames(ends[:]...)
	entered, err := c.cgroup.enter(c.cmd)
	if err == nil {
		err = c.cmd.Start()
		entered()
	}
	if err == nil {
		c.keep(pipes) // before anything else: who crashes now must find it
	}
	closeAll(c.cmd.Stdin.(*os.File), c.cmd.Stdout.(*os.File), c.cmd.Stderr.(*os.File))
	if err != nil {
		closeAll(ends[:]...)
	}
	return ends, err
}

func command(cfg *config.Server) (*exec.Cmd, error) {
	environ := childEnv(cfg, os.Environ())
	path, err := lookPath(cfg.Command, cfg.Cwd, environ)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{cfg.Command}, cfg.Args...), Env: environ, Dir: cfg.Cwd, SysProcAttr: groupAttr()}
	return cmd, nil
}

// openPipes gives the child its three streams and us their other ends.
func openPipes(cmd *exec.Cmd) (ours [3]*os.File, err error) {
	var theirs [3]*os.File
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours[:]...)
			closeAll(theirs[:]...)
			return ours, fmt.Errorf("opening a pipe: %w", err)
		}
		if i < 2 {
			widen(r)
		}
		if i == 0 {
			theirs[i], ours[i] = r, w
		} else {
			ours[i], theirs[i] = r, w
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	return ours, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// wait sees the process end, ends what is left of its group, lets the pipes run dry, and reaps it.
func (c *child) wait(stderr *os.File) {
	c.reap()
	// What the process wrote before its end is still read; a process outside the group that holds the pipes is not
	// waited for.
	timer := time.AfterFunc(drainAfterExit, func() { closeAll(c.stdout, stderr) })
	c.pumps.Wait()
	timer.Stop()
	closeAll(c.stdout, stderr)
	_ = c.pipe.w.Close()
	c.pipe.wg.Stop()
	c.forget()
	c.env.log.Info("child ended", zap.Int("pid", c.cmd.Process.Pid), zap.String("status", c.status.Error()))
	close(c.gone)
}

// reap waits for the end of the process, and ends what is left of its group.
func (c *child) reap() {
	err := awaitEnd(c.cmd, waitExit)
	c.env.usage.end(c, c.cmd.ProcessState) // from here on its number may be somebody else's
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

// signal signals whoever is left of the group.
func (c *child) signal(kill bool) {
	c.signals.Lock()
	defer c.signals.Unlock()
	if !c.over {
		signalGroup(c.cmd.Process, kill)
	}
}

// forget takes the process off the lists: nothing of it is left.
func (c *child) forget() {
	if c.env.brood != nil {
		c.env.brood.remove(c)
	}
	c.drop()
}

func (c *child) exitError(err error) error {
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

// why gives the reason of the end of stdout: how the process ended and the last it said.
func (c *child) why(err error) error {
	select {
	case <-c.exited:
	case <-time.After(drainAfterExit):
		return fmt.Errorf("the process closed its stdout: %w", err)
	}
	c.stderr.settle()
	if last := c.stderr.last(3); len(last) > 0 {
		return fmt.Errorf("%w; its last words: %s", c.status, strings.Join(last, " | "))
	}
	return c.status
}

// Close stops the process and waits until it is gone; its second and later callers only wait.
func (c *child) Close() {
	c.stopOnce.Do(func() {
		close(c.stopping)
		// A writer may hold the turn while the child does not read; closing the pipe frees it.
		_ = c.pipe.w.Close()
		if !c.within(graceAfterEOF) {
			c.signal(false)
			if !c.within(graceAfterTerm) {
				c.kill()
			}
		}
	})
	<-c.gone
}

func (c *child) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}

func (c *child) kill() {
	c.signal(true)
	c.cgroup.kill()
}

// turnedDeaf is told that the process has closed its stdin. It is of no more use, also if it lives on; what it still has to say
// is heard until it is stopped.
func (c *child) turnedDeaf() {
	if !c.deaf.Swap(true) {
		go c.Close()
	}
}

var errDeaf = errors.New("the process has closed its stdin")

func (c *child) Done() <-chan struct{} { return c.pipe.done }

func (c *child) Err() error {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	if c.mux.err == nil && c.deaf.Load() {
		return errDeaf
	}
	return c.mux.err
}

// startError names the command, and for one that was not found the PATH that was searched.
func startError(cfg *config.Server, cmd *exec.Cmd, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("cannot start %q (%s): %w", cfg.Command, cmd.Path, err)
}

func (c *child) negotiated(*Peer) {}

func (c *child) opened() {}
