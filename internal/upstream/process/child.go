package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Child is one process and our ends of its streams. Whoever has started it says with Go what reads and writes them, and
// then sees it off: Reap, Drain and Forget, in this order, whatever else happens. The other methods may be called by
// anybody at any time.
type Child struct {
	// Stdin and Stdout are our ends. Drain closes Stdout.
	Stdin, Stdout *os.File

	home   *Home
	cmd    *exec.Cmd
	cgroup *cgroup // nil without limits
	stderr *os.File
	tail   *Tail
	pumps  sync.WaitGroup // the readers and writers of the streams

	exited chan struct{} // closed when the process itself has ended, before its group is gone
	gone   chan struct{} // closed when it is reaped and nothing of ours runs for it any more
	status error         // how it ended; set before exited is closed

	signals sync.Mutex // orders signals and the end of the group
	over    bool       // nothing is left of the group, and its number may be another's

	stopOnce sync.Once
}

// Start starts the command of an upstream in a process group of its own. From then on it can be killed with the others of
// its home, and what it writes to stderr is drained.
func Start(home *Home, cfg *config.Server) (*Child, error) {
	c := &Child{home: home, tail: NewTail(home.Log, home.Count, home.Mask), exited: make(chan struct{}), gone: make(chan struct{})}
	if err := c.begin(cfg); err != nil {
		return nil, err
	}
	c.pumps.Go(func() { c.tail.Drain(c.stderr) })
	home.Brood.add(c)
	home.Usage.begin(c)
	return c, nil
}

// begin starts the command within its limits.
func (c *Child) begin(cfg *config.Server) (err error) {
	if c.cmd, err = command(cfg); err != nil {
		return err
	}
	if c.cgroup, err = limited(cfg.Limits); err != nil {
		return err
	}
	if err = c.launch(); err != nil {
		c.cgroup.remove()
		return startError(cfg, c.cmd, err)
	}
	return nil
}

// launch starts the process and takes our ends of its streams.
func (c *Child) launch() error {
	ends, err := openPipes(c.cmd)
	if err != nil {
		return err
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
		return err
	}
	c.Stdin, c.Stdout, c.stderr = ends[0], ends[1], ends[2]
	return nil
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

// openPipes gives the child its three streams and us their other ends: stdin to write, stdout and stderr to read.
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

// startError names the command, and for one that was not found the PATH that was searched.
func startError(cfg *config.Server, cmd *exec.Cmd, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("cannot start %q (%s): %w", cfg.Command, cmd.Path, err)
}

// PID is the number of the process.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Go runs f, which reads or writes a stream until that ends.
func (c *Child) Go(f func()) { c.pumps.Go(f) }

// Tail is the last that the process has said on stderr.
func (c *Child) Tail() *Tail { return c.tail }
