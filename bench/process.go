package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end before it is killed.
const stopGrace = 10 * time.Second

// process is a child that serves on a loopback port.
type process struct {
	cmd  *exec.Cmd
	addr string // host:port
	// end asks the child to end.
	end    func() error
	exited chan struct{} // closed once the child is gone
	fault  error         // how it ended; read after exited
}

// watch waits for the child in the background; stop waits for that.
func (p *process) watch() {
	p.exited = make(chan struct{})
	go func() {
		defer close(p.exited)
		p.fault = p.cmd.Wait()
	}()
}

// stop ends the child, by force if it does not follow, and waits for it.
func (p *process) stop() error {
	fault := p.end()
	select {
	case <-p.exited:
		return p.fault
	case <-time.After(stopGrace):
		p.cmd.Process.Kill()
		<-p.exited
		return errors.Join(fault, fmt.Errorf("%s did not end within %v and was killed", p.cmd.Path, stopGrace))
	}
}

// startRole starts this program again in an HTTP role and waits for its
// address.
func startRole(ctx context.Context, args ...string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, end: stdin.Close}
	unwatched := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	p.addr, err = readAddr(stdout)
	p.watch() // not before: Wait closes the pipe
	if !unwatched() || err != nil {
		p.stop()
		return nil, fmt.Errorf("starting %s: %w", args[0], errors.Join(context.Cause(ctx), err))
	}
	return p, nil
}

// readAddr reads the line on which a role tells its address.
func readAddr(stdout io.Reader) (string, error) {
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("reading the address: %w", err)
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), announced)
	if !ok {
		return "", fmt.Errorf("no address: %q", line)
	}
	return addr, nil
}

// terminate returns a function that asks cmd's process to end by signal.
func terminate(cmd *exec.Cmd) func() error {
	return func() error { return cmd.Process.Signal(syscall.SIGTERM) }
}
