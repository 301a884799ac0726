package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/lines"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// endGrace bounds each of the two waits at the end of a conversation over pipes: for the requests that were cancelled,
// and for the client to read what was written for it.
const endGrace = 2 * time.Second

// stdio is one conversation over a pair of pipes, one message a line. Its client may speak either era, and change it
// from message to message: each tells its own (2026-07-28, versioning).
type stdio struct {
	m    *Manager
	view string
	unit string // what upstreams that are not shared know the client by
	out  *lines.Writer

	ctx    context.Context // of all requests
	cancel context.CancelCauseFunc
	runs   sync.WaitGroup

	questions questions
	state     standingState // of a legacy client
	// legacy is the caller that initialize has made known; only the reading goroutine uses it.
	legacy *proxy.Caller
	// heard are the changes that a legacy client has not been told yet.
	heard      *listen
	stopHeard  func() // nil before initialize
	announcing bool

	mu       sync.Mutex
	inflight map[string][]*running
	count    int
	ended    bool
}

// ServeStdio serves one conversation of messages that come as lines from r and go as lines to w. It returns when r ends,
// when the client does not take what is written, when ctx ends, or when Drain is called; nothing of the conversation runs
// then any more, but for a Read or a Write that never returns. A reader that is an io.Closer is closed. The end of r is no
// error, and neither is a client that has closed the other end of w.
func (m *Manager) ServeStdio(ctx context.Context, r io.Reader, w io.Writer, view string) error {
	c := m.newStdio(w, view)
	c.out.Start()
	read := make(chan error, 1)
	go func() { read <- c.read(lines.NewReader(r, clampInt(m.opt.Limits.MaxBodyBytes))) }()
	var err error
	select {
	case err = <-read:
		c.cancel(proxy.CauseSessionEnd)
	case <-c.out.Failed():
		err = c.out.Err()
		c.cancel(proxy.CauseClientGone)
	case <-ctx.Done():
		c.cancel(proxy.CauseShutdown)
	case <-m.drained: // what runs may end by itself; Drain bounds it
	}
	c.end()
	c.state.close()
	if closer, ok := r.(io.Closer); ok {
		_ = closer.Close()
	}
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("the conversation over stdio ended: %w", err)
}

func (m *Manager) newStdio(w io.Writer, view string) *stdio {
	c := &stdio{m: m, view: view, unit: "session/" + randomText(), inflight: map[string][]*running{},
		out: lines.NewWriter(w, clampInt(m.opt.Limits.MaxFrameBytes), writeTimeout)}
	c.heard = &listen{view: view, news: newNews(), want: proxy.Changes{Tools: true, Prompts: true, Resources: true}}
	c.ctx, c.cancel = context.WithCancelCause(m.base)
	return c
}

func clampInt(n int64) int { return int(min(n, math.MaxInt32)) }

// read takes the lines of the client until there are no more.
func (c *stdio) read(in *lines.Reader) error {
	for {
		line, err := in.Next()
		switch {
		case err == nil:
			c.take(line)
		case errors.Is(err, lines.ErrTooLong):
			c.m.count.Limit(count.LimitBody)
			text := fmt.Sprintf("the message is over the limit of %d bytes (limits.max_body_bytes)", c.m.opt.Limits.MaxBodyBytes)
			c.fail(nil, wire.CodeInvalidRequest, text)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// end waits for what runs and writes what is to be written.
func (c *stdio) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		c.runs.Wait()
		close(idle)
	}()
	var late <-chan time.Time
	if c.ctx.Err() != nil { // what was cancelled can only be held up by a client that does not read
		timer := time.NewTimer(endGrace)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-idle:
	case <-late:
	}
	if !c.out.Close(endGrace) {
		c.m.count.Drop(count.DropClientSlow)
	}
	<-idle
	c.cancel(proxy.CauseSessionEnd)
	if c.stopHeard != nil {
		c.stopHeard()
	}
	c.m.part(c.unit)
	c.m.opt.Ended(c.unit)
}

// answer writes the answer to a request.
func (c *stdio) answer(a *proxy.Answer) {
	parts := a.Parts()
	c.write(parts[0], parts[1], parts[2])
}

func (c *stdio) fail(id []byte, code int, text string) {
	a := proxy.Failure(id, code, text, nil)
	c.answer(&a)
}

// write sends one message; false where the client does not take it any more.
func (c *stdio) write(parts ...[]byte) bool {
	if c.out.Send(parts...) != nil {
		c.m.count.Drop(count.DropClientSlow)
		return false
	}
	return true
}
