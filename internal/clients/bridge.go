package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/lines"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

const (
	// maxMessage bounds one message of the client; what the proxy takes is usually less.
	maxMessage = 64 << 20
	// maxWaiting bounds what waits for the client to read.
	maxWaiting = 32 << 20
	// maxCrossings bounds the messages on their way.
	maxCrossings = 512
	// readPatience is how long a client may take nothing while messages wait for it.
	readPatience = 15 * time.Second
	// partGrace bounds each step of the end.
	partGrace = 2 * time.Second
)

// Bridge connects a client that speaks over pipes with a running proxy. Messages of either era cross as they are, byte
// for byte; what HTTP wants beside them is kept here: session ids, headers that repeat the message, streams.
type Bridge struct {
	URL string
	// Token is sent as a bearer token where it is not empty; TokenVariable is where the user puts it, for messages.
	Token, TokenVariable string
	Log                  *zap.Logger

	transport http.RoundTripper // nil for one of its own
}

// bridge is one conversation that is bridged.
type bridge struct {
	*Bridge
	http *http.Client
	out  *lines.Writer

	ctx    context.Context
	cancel context.CancelFunc
	runs   sync.WaitGroup
	gate   chan struct{} // the last handshake message has crossed when it is closed; of the reading goroutine
	past   pastSide
	book   paramBook

	mu       sync.Mutex
	ended    bool
	inflight map[string][]*crossing
	crossing int
}

// crossing is one message of the client on its way.
type crossing struct {
	raw    []byte
	frame  *wire.Frame // nil for a batch
	id     []byte      // of a request; nil where no answer is due
	key    string
	modern bool

	ctx     context.Context
	cancel  context.CancelFunc
	written chan struct{} // closed once it has been sent
	sent    sync.Once
	done    chan struct{}

	mu       sync.Mutex
	answered bool // or not wanted any more
}

// ErrBridgeURL is wrapped by the error of Run about a URL that cannot be one of a proxy.
var ErrBridgeURL = errors.New("not the URL of an MCP endpoint")

// Run bridges until in ends, ctx ends, or out is not read any more. It does not fail where the proxy cannot be reached:
// each request is then answered with an error, and the next one tries again. A reader that is an io.Closer is closed.
func (b *Bridge) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	address, _ := locate(b.URL)
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q; it looks like http://127.0.0.1:8080/mcp", ErrBridgeURL, b.URL)
	}
	r := b.start(out)
	read := make(chan error, 1)
	go func() { read <- r.read(lines.NewReader(in, maxMessage)) }()
	select {
	case err = <-read:
	case <-r.out.Failed():
		err = r.out.Err()
	case <-ctx.Done():
	}
	r.end()
	if closer, ok := in.(io.Closer); ok {
		_ = closer.Close()
	}
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return fmt.Errorf("the conversation over stdio ended: %w", err)
}

func (b *Bridge) start(out io.Writer) *bridge {
	open := make(chan struct{})
	close(open)
	r := &bridge{Bridge: b, out: lines.NewWriter(out, maxWaiting, readPatience), gate: open, inflight: map[string][]*crossing{}}
	r.past.turn = make(chan struct{}, 1)
	t := b.transport
	if t == nil {
		address, own := locate(b.URL)
		at := *b
		at.URL = address
		r.Bridge = &at
		own.MaxIdleConnsPerHost = 32
		t = own
	}
	// A redirect could lead the token and the messages to somebody else.
	r.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.out.Start()
	return r
}

// end takes leave of the proxy, ends what is on its way and writes what is to be written.
func (b *bridge) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.past.leave(b)
	b.cancel()
	idle := make(chan struct{})
	go func() {
		b.runs.Wait()
		close(idle)
	}()
	timer := time.NewTimer(partGrace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C: // held up by a client that does not read
	}
	b.out.Close(partGrace)
	<-idle
	b.http.CloseIdleConnections()
}

// spawn runs something on a goroutine that the end waits for.
func (b *bridge) spawn(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return false
	}
	b.runs.Go(f)
	return true
}

// read takes the messages of the client until there are no more.
func (b *bridge) read(in *lines.Reader) error {
	for {
		line, err := in.Next()
		switch {
		case err == nil:
			b.take(line)
		case errors.Is(err, lines.ErrTooLong):
			b.send(failure(nil, wire.CodeInvalidRequest, "", fmt.Sprintf("the message is over the limit of %d bytes", maxMessage)))
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

// take brings one line on its way.
func (b *bridge) take(line []byte) {
	c := &crossing{written: make(chan struct{}), done: make(chan struct{})}
	if wire.IsBatch(line) {
		c.raw, c.id = line, []byte("null")
	} else {
		f, err := wire.Parse(line, wire.Downstream, wire.Limits{})
		if err != nil {
			b.send(unreadable(err))
			return
		}
		c.raw, c.frame = f.Raw, f
		c.modern = f.Meta.Has(f.Raw, wire.MetaProtocolVersion)
		if f.Kind == wire.KindRequest {
			c.id = f.ID.Of(f.Raw)
			c.key = wire.IDKey(c.id)
		}
		if f.Kind == wire.KindNotification && f.Method == "notifications/cancelled" && b.cancelled(f) {
			return
		}
	}
	b.launch(c)
}

func unreadable(err error) []byte {
	var pe *wire.ParseError
	if errors.As(err, &pe) {
		return failure(pe.ID, pe.Code, "", pe.Error())
	}
	return failure(nil, wire.CodeParse, "", err.Error())
}

// launch lets a message cross on a goroutine of its own, in the order that the handshake demands.
func (b *bridge) launch(c *crossing) {
	if !b.enter(c) {
		if c.id != nil {
			b.send(failure(c.id, wire.CodeInternal, "overloaded", "too many requests are under way"))
		}
		return
	}
	wait := b.gate
	opened := func() {}
	if c.handshake() {
		gate := make(chan struct{})
		b.gate, opened = gate, func() { close(gate) }
	}
	switch {
	case c.is("initialize"):
		b.past.begin(c.raw)
	case c.is("notifications/initialized"):
		b.past.finish(c.raw)
	}
	if !b.spawn(func() {
		defer b.leave(c)
		defer opened()
		b.cross(c, wait)
	}) {
		b.leave(c)
	}
}

func (c *crossing) is(method string) bool {
	return c.frame != nil && c.frame.Method == method && !c.modern
}

// handshake says whether what comes later may only be sent once this has been answered.
func (c *crossing) handshake() bool { return c.is("initialize") || c.is("notifications/initialized") }

func (b *bridge) cross(c *crossing, wait <-chan struct{}) {
	switch {
	case c.modern && c.frame.Method == "subscriptions/listen":
		b.listen(c)
	case c.modern:
		b.modern(c)
	default:
		select {
		case <-wait:
			b.legacy(c)
		case <-c.ctx.Done():
		}
	}
}

// enter notes a message on its way; false where there are too many.
func (b *bridge) enter(c *crossing) bool {
	c.ctx, c.cancel = context.WithCancel(b.ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.crossing >= maxCrossings {
		c.cancel()
		return false
	}
	b.crossing++
	if c.key != "" {
		b.inflight[c.key] = append(b.inflight[c.key], c)
	}
	return true
}

func (b *bridge) leave(c *crossing) {
	c.cancel()
	close(c.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.crossing--
	b.forget(c)
}

// forget frees the id of a request. b.mu is held.
func (b *bridge) forget(c *crossing) {
	rest := slices.DeleteFunc(b.inflight[c.key], func(o *crossing) bool { return o == c })
	if len(rest) == 0 {
		delete(b.inflight, c.key)
		return
	}
	b.inflight[c.key] = rest
}

// cancelled handles a cancel of the client by the means of the era of what it cancels; false where it is to cross as any
// other message.
func (b *bridge) cancelled(f *wire.Frame) bool {
	id := f.Body.Get(f.Raw, "requestId").Of(f.Raw)
	if !wire.ValidID(id) {
		return false
	}
	b.mu.Lock()
	all := b.inflight[wire.IDKey(id)]
	var c *crossing
	if len(all) == 1 {
		c = all[0]
	}
	b.mu.Unlock()
	switch {
	case c == nil || c.is("initialize"): // which must not be cancelled
		return true
	case c.modern:
		c.settle()
		c.cancel() // the closed response is the cancel (2026-07-28, streamable HTTP)
	default:
		c.settle()
		b.spawn(func() { b.cancelLegacy(c, f.Raw) })
	}
	return true
}

// settle says whether an answer is still due, and that it is not from now on.
func (c *crossing) settle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := !c.answered && c.id != nil
	c.answered = true
	return due
}

// isDue says whether an answer is still due.
func (c *crossing) isDue() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.answered && c.id != nil
}

// send writes a message to the client. Where that fails the conversation ends, so nobody has to be told.
func (b *bridge) send(frame []byte) { _ = b.out.Send(frame) }

// answer gives the client the answer to a request, once. The id is free for it before it can know. At the end nothing is
// answered any more: it is the proxy that ends what runs in the session, and that would be taken for a lost connection.
func (b *bridge) answer(c *crossing, frame []byte) {
	if !c.settle() {
		return
	}
	b.mu.Lock()
	b.forget(c)
	over := b.ended
	b.mu.Unlock()
	if !over {
		b.send(frame)
	}
}
