package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeTransport serves one client over a transport of the SDK, until it or ctx ends, or Stop is called. It may be called
// many times, and at a time, between Start and Stop.
func (a *App) ServeTransport(ctx context.Context, t mcp.Transport, part Part) error {
	if err := a.HasPart(part); err != nil {
		return err
	}
	conn, err := t.Connect(ctx)
	if err != nil {
		return fmt.Errorf("connecting with the client: %w", err)
	}
	c := newTransportPipe(conn)
	err = a.sessions.ServeStdio(ctx, c, c, part.view())
	return errors.Join(err, c.end())
}

// transportPipe makes lines of the messages of a connection, and messages of the lines for it. A message of the SDK has one
// spelling and no line breaks.
type transportPipe struct {
	conn   mcp.Connection
	ctx    context.Context // of reads and writes
	cancel context.CancelFunc
	lines  *io.PipeReader
	pumps  sync.WaitGroup
	part   []byte // of a line that has not come whole
}

func newTransportPipe(conn mcp.Connection) *transportPipe {
	c := &transportPipe{conn: conn}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	var in *io.PipeWriter
	c.lines, in = io.Pipe()
	c.pumps.Go(func() { _ = in.CloseWithError(c.pump(in)) })
	return c
}

// pump reads messages until there are no more.
func (c *transportPipe) pump(in *io.PipeWriter) error {
	for {
		m, err := c.conn.Read(c.ctx)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || c.ctx.Err() != nil {
				return io.EOF
			}
			return err
		}
		b, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return fmt.Errorf("reading a message of the client: %w", err)
		}
		if _, err := in.Write(append(b, '\n')); err != nil {
			return io.EOF
		}
	}
}

// Read implements io.Reader.
func (c *transportPipe) Read(b []byte) (int, error) { return c.lines.Read(b) }

// Write implements io.Writer. It is called by one goroutine at a time.
func (c *transportPipe) Write(b []byte) (int, error) {
	for rest := b; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			c.part = append(c.part, rest...)
			return len(b), nil
		}
		m, err := jsonrpc.DecodeMessage(append(c.part, rest[:end]...))
		if err == nil {
			err = c.conn.Write(c.ctx, m)
		}
		if err != nil {
			return 0, fmt.Errorf("writing a message for the client: %w", err)
		}
		c.part, rest = nil, rest[end+1:] // the message may still use what it was made of
	}
}

// Close implements io.Closer: there is nothing more to be read.
func (c *transportPipe) Close() error { return c.lines.Close() }

// end closes the connection and waits for its reader.
func (c *transportPipe) end() error {
	c.cancel()
	err := c.conn.Close()
	_ = c.lines.Close()
	c.pumps.Wait()
	return err
}
