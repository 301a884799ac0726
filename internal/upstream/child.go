package upstream

import (
	"errors"
	"path/filepath"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

// child is one process and the conversation over its stdin and stdout.
type child struct {
	*pipe
	proc *process.Child
	deaf atomic.Bool // it has closed its stdin
}

// startChild starts the command of an upstream and listens to it.
func startChild(e *env, cfg *config.Server) (*child, error) {
	p, err := process.Start(e.home, cfg)
	if err != nil {
		return nil, err
	}
	e.log.Info("child started", zap.Int("pid", p.PID()), zap.String("command", filepath.Base(cfg.Command)))
	c := &child{proc: p, pipe: newPipe(e, p.Stdin)}
	c.pipe.why = p.Why
	c.pipe.broken = func(error) { p.Kill() }
	c.pipe.deaf = c.turnedDeaf
	p.Go(func() { c.pipe.run(p.Stdout) })
	go c.wait()
	return c, nil
}

// wait sees the process off.
func (c *child) wait() {
	c.proc.Reap()
	c.proc.Drain()
	_ = c.pipe.w.Close()
	c.pipe.wg.Stop()
	c.env.log.Info("child ended", zap.Int("pid", c.proc.PID()), zap.String("status", c.proc.Status().Error()))
	c.proc.Forget()
}

// Close stops the process and waits until it is gone; its second and later callers only wait.
func (c *child) Close() { c.proc.Stop() }

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

func (c *child) negotiated(*Peer) {}

func (c *child) opened() {}

// EndLeftovers ends the children that an earlier process has left behind. It returns when they are gone, after a few
// seconds at most.
func EndLeftovers(l process.Ledger, log *zap.Logger) { process.EndLeftovers(l, log) }
