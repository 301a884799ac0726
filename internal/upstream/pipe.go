package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// writeEnd is the end of a pipe that we write to. Its deadline frees a write that the other side does not take.
type writeEnd interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
}

// pipe is a conversation of one message a line over a pair of byte streams: a child's stdio, a server in this process.
// One reader runs for its life; whoever writes holds the turn.
type pipe struct {
	*mux
	env  *env
	w    writeEnd
	turn chan struct{} // holds one token: the right to write
	done chan struct{} // closed when the reader has ended
	wg   group
	// broken is called when the stream to the upstream is spoilt by half a frame.
	broken func(error)
	// deaf is called when the other side reads no more, though it may still be heard.
	deaf func()
	// why gives the reason of an end of the stream, better than io.EOF.
	why func(error) error
}

func newPipe(e *env, w writeEnd) *pipe {
	p := &pipe{env: e, w: w, turn: make(chan struct{}, 1), done: make(chan struct{})}
	p.turn <- struct{}{}
	p.mux = newMux(e, p.replySoon)
	p.broken = func(error) {}
	p.deaf = func() {}
	p.why = func(err error) error { return err }
	return p
}

// run reads until the stream ends; then every pending call fails.
func (p *pipe) run(r io.Reader) {
	err := p.read(newLineReader(r, p.env.maxFrame))
	p.mux.fail(&Error{Upstream: p.env.id, Reason: ReasonUncertain, Err: p.why(err)})
	close(p.done)
}

func (p *pipe) read(lines *lineReader) error {
	for first := true; ; first = false {
		l, err := lines.next()
		if err != nil {
			return err
		}
		if first {
			l.text = bytes.TrimPrefix(l.text, []byte("\xef\xbb\xbf"))
		}
		p.line(l)
	}
}

// line handles one line of the upstream, which is a message, a batch, or noise.
func (p *pipe) line(l line) {
	if l.tooLong {
		p.env.count.Limit(count.LimitFrame)
		err := &Error{Upstream: p.env.id, Reason: ReasonTransport, Err: fmt.Errorf("%w (%d bytes)", errFrameTooLong, p.env.maxFrame)}
		if !p.failLong(l, err) {
			p.env.noise("a line that is too long", l.head)
		}
		return
	}
	text := bytes.TrimSpace(l.text)
	if len(text) == 0 {
		return
	}
	if text[0] == '{' {
		if f, err := p.env.parse(text); err == nil && !(f.Amended && foreign(text)) {
			p.dispatch(f)
			return
		}
	}
	p.oddLine(text)
}

// oddLine recovers the messages of a line that is not just one: several of them, a batch, or one behind noise.
func (p *pipe) oddLine(text []byte) {
	values, rest := wire.SplitValues(text, maxBatch)
	found := 0
	for _, v := range values {
		found += p.value(v)
	}
	if found == 0 && bytes.HasPrefix(text, []byte(`{"jsonrpc"`)) {
		if id := idAtEdge(line{head: text, tail: text}); id != 0 {
			p.failOne(id, &Error{Upstream: p.env.id, Reason: ReasonTransport, Err: errors.New("the answer is not valid JSON")})
		}
	}
	if found == 0 || len(bytes.TrimSpace(rest)) > 0 {
		p.env.count.Drop(count.DropNoise)
		p.env.noise("a line on stdout", text)
	}
}

// maxBatch bounds the messages of one line of an upstream.
const maxBatch = 1000

func (p *pipe) value(v []byte) (found int) {
	parts := [][]byte{v}
	if wire.IsBatch(v) {
		var err error
		if parts, err = wire.SplitBatch(v, maxBatch); err != nil {
			return 0
		}
	}
	for _, part := range parts {
		f, err := p.env.parse(part)
		if (err != nil || f.Amended) && foreign(part) {
			continue
		}
		if err != nil {
			if id := idAtEdge(line{head: part, tail: part}); id != 0 {
				p.failOne(id, &Error{Upstream: p.env.id, Reason: ReasonTransport, Err: fmt.Errorf("the answer is not valid: %w", err)})
				found++
			}
			continue
		}
		found++
		p.dispatch(f)
	}
	return found
}

// send writes one frame and its line feed. A caller whose ctx ends before its turn takes its frame back; one that ends
// in the middle of a frame costs the connection, since nobody can tell where the next message begins.
func (p *pipe) send(ctx context.Context, frame []byte) error {
	select {
	case <-p.turn:
	case <-p.done:
		return p.unsent(io.ErrClosedPipe)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { p.turn <- struct{}{} }()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	n, err := p.write(ctx, append(frame, '\n'))
	switch {
	case err == nil:
		return nil
	case n == 0 && ctx.Err() != nil:
		return context.Cause(ctx)
	case n == 0:
		p.deaf()
		return p.unsent(err)
	}
	p.broken(fmt.Errorf("a message could only be written in part: %w", err))
	return &Error{Upstream: p.env.id, Reason: ReasonUncertain, Err: err}
}

// write writes until ctx ends.
func (p *pipe) write(ctx context.Context, b []byte) (int, error) {
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.w.SetWriteDeadline(time.Unix(1, 0))
		close(set)
	})
	n, err := p.w.Write(b)
	if !stop() {
		// The deadline is set now or in a moment; it must not meet the next writer.
		<-set
		_ = p.w.SetWriteDeadline(time.Time{})
	}
	return n, err
}

func (p *pipe) unsent(err error) error {
	return &Error{Upstream: p.env.id, Reason: ReasonUnavailable, Err: errors.Join(ErrNeverSent, p.why(err))}
}

func (p *pipe) Start(_ context.Context, out *Outgoing) (Exchange, error) {
	box, err := p.open(out)
	if err != nil {
		return nil, err
	}
	x := &boxExchange{m: p.mux, id: out.ID, box: box, send: p.send}
	x.write = func(ctx context.Context) error { return p.send(ctx, out.Frame) }
	return x, nil
}

func (p *pipe) Notify(ctx context.Context, frame []byte) error { return p.send(ctx, frame) }

func (p *pipe) Cancel(ctx context.Context, id uint64, reason string) error {
	return p.send(ctx, cancelFrame(id, reason))
}

// replySoon answers a request of the upstream without holding up the reader.
func (p *pipe) replySoon(frame []byte) {
	p.wg.Soon(func() {
		ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
		defer cancel()
		_ = p.send(ctx, frame)
	})
}

// replyTimeout bounds what is written off anybody's path: refusals, cancels.
const replyTimeout = 5 * time.Second

func cancelFrame(id uint64, reason string) []byte {
	out := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	out = wire.AppendUpstreamID(out, id)
	if reason != "" {
		out = wire.AppendString(append(out, `,"reason":`...), reason)
	}
	return append(out, "}}"...)
}
