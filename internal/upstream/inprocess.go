package upstream

import (
	"context"
	"errors"
	"io"
	"net"

	"go.uber.org/zap"
)

// InProcess serves MCP, one message a line, over a connection until it ends or ctx does. It is how a server that lives
// in this process is reached.
type InProcess func(ctx context.Context, rw io.ReadWriteCloser) error

// inprocess is a conversation with a server in this process.
type inprocess struct {
	*pipe
	ours   net.Conn
	cancel context.CancelFunc
	served chan struct{}
	run    group
}

func startInProcess(e *env, serve InProcess) *inprocess {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &inprocess{pipe: newPipe(e, ours), ours: ours, cancel: cancel, served: make(chan struct{})}
	c.pipe.broken = func(error) { _ = ours.Close() }
	c.pipe.why = func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return errors.New("the server in this process has ended")
		}
		return err
	}
	c.run.Go(func() { c.pipe.run(ours) })
	c.run.Go(func() {
		defer close(c.served)
		defer theirs.Close()
		if err := serve(ctx, theirs); err != nil && ctx.Err() == nil {
			e.log.Warn("the server in this process ended", zap.Error(err))
		}
	})
	return c
}

func (c *inprocess) Done() <-chan struct{} { return c.pipe.done }

func (c *inprocess) Err() error {
	c.mux.mu.Lock()
	defer c.mux.mu.Unlock()
	return c.mux.err
}

func (c *inprocess) negotiated(*Peer) {}

func (c *inprocess) opened() {}

func (c *inprocess) Close() {
	c.cancel()
	_ = c.ours.Close()
	c.run.Stop()
	c.pipe.wg.Stop()
}
