package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to end after it was asked to.
const stopTimeout = 40 * time.Second

// tailBytes is how much of a log an error quotes.
const tailBytes = 4000

// Process is a program that runs beside the test. Its output goes to a file.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended
	err  error         // what Wait gave; read it after done
}

// Command describes a program to start.
type Command struct {
	Name string   // what errors and the log file call it
	Args []string // the program and its arguments
	Env  []string // added to our own environment
	Dir  string   // where it runs
	Logs string   // the folder for its output
}

// Start starts the program. The caller must Stop it.
func Start(c Command) (*Process, error) {
	path := filepath.Join(c.Logs, c.Name+".log")
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	p := &Process{name: c.Name, log: path, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// Ready runs wait, which is given up when the process ends or after limit. Its error quotes the end of the log.
func (p *Process) Ready(ctx context.Context, limit time.Duration, wait func(context.Context) error) error {
	ctx, cancelCause := context.WithCancelCause(ctx)
	defer cancelCause(nil)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-p.done:
			cancelCause(fmt.Errorf("%s ended: %w", p.name, p.exit()))
		case <-ctx.Done():
		}
	}()
	err := wait(ctx)
	cancel()
	<-watched
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, err, p.Tail())
	}
	return nil
}

// Stop asks the process to end and waits for it; the error is nil only for exit code 0. A process that does not end
// in time is killed, which is an error.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("asking %s to end: %w", p.name, err)
	}
	return p.wait()
}

// Kill ends the process at once, for programs that know no graceful end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only when the process has ended
	<-p.done
}

func (p *Process) wait() error {
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("%s did not end within %v\n%s", p.name, stopTimeout, p.Tail())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w\n%s", p.name, p.err, p.Tail())
	}
	return nil
}

// exit says how the process ended, also when that was without an error.
func (p *Process) exit() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// Tail gives the end of what the process has written.
func (p *Process) Tail() []byte {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Appendf(nil, "(no log: %v)", err)
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return bytes.TrimSpace(text)
}
