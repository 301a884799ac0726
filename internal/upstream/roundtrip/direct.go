package roundtrip

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"time"
)

// directTransport carries plain HTTP/1.1 exchanges on the goroutine of their caller: it writes the request and reads the
// answer itself, where http.Transport hands both over to goroutines of the connection, which costs more than all the
// rest of a small call. It also looks at a connection that was idle before it uses it, so that a server that has closed
// it costs nobody an uncertain call. What needs TLS, HTTP/2 or a proxy goes through http.Transport.
type directTransport struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	idle  map[string][]*directConn // the newest is the last
	prune *time.Timer
}

const (
	maxIdlePerHost = 256
	idleTimeout    = 90 * time.Second
	// freshFor is for how long a connection that has just been used is not looked at again.
	freshFor = 100 * time.Millisecond
	// maxHead bounds the head of an answer.
	maxHead = 1 << 20
)

type directConn struct {
	net.Conn
	host  string
	r     *bufio.Reader
	w     *bufio.Writer
	left  int64 // what may still be read
	sent  int64
	since time.Time
}

// Read bounds what the other side can make us hold while a head is read.
func (c *directConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the head of the answer is too long")
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

func (c *directConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.sent += int64(n)
	return n, err
}

func newDirectTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *directTransport {
	return &directTransport{dial: dial, idle: map[string][]*directConn{}}
}

// RoundTrip implements http.RoundTripper.
func (t *directTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		c, used, err := t.conn(req)
		if err != nil {
			return nil, err
		}
		resp, err := t.exchange(c, req)
		if err != nil && used && req.Context().Err() == nil {
			t.drop(c.host) // the others of its time have hardly fared better, and what is sent again must not meet them
		}
		if err == nil || !used || c.sent > 0 || req.Context().Err() != nil {
			return resp, err
		}
		// The connection had died while it was idle, before a byte of the request left.
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// conn gives a connection that was idle and is still alive, or a new one.
func (t *directTransport) conn(req *http.Request) (c *directConn, used bool, err error) {
	host := req.URL.Host
	for {
		c := t.take(host)
		if c == nil {
			break
		}
		if time.Since(c.since) < freshFor || alive(c.Conn) {
			c.sent = 0
			return c, true, nil
		}
		_ = c.Close()
	}
	addr := host
	if req.URL.Port() == "" {
		addr = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	nc, err := t.dial(req.Context(), "tcp", addr)
	if err != nil {
		return nil, false, err
	}
	c = &directConn{Conn: nc, host: host}
	c.r, c.w = bufio.NewReaderSize(c, 32<<10), bufio.NewWriterSize(c, 16<<10)
	return c, false, nil
}

func (t *directTransport) take(host string) *directConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.idle[host]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	t.idle[host] = list[:len(list)-1]
	return c
}

// drop closes what is idle towards one host.
func (t *directTransport) drop(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle[host] {
		_ = c.Close()
	}
	delete(t.idle, host)
}

// put keeps a connection whose answer has been read to its end.
func (t *directTransport) put(c *directConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[c.host]) >= maxIdlePerHost {
		_ = c.Close()
		return
	}
	c.since = time.Now()
	t.idle[c.host] = append(t.idle[c.host], c)
	if t.prune == nil {
		t.prune = time.AfterFunc(idleTimeout, t.closeOld)
	}
}

// closeOld closes what has been idle for long.
func (t *directTransport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune = nil
	now := time.Now()
	for host, list := range t.idle {
		for len(list) > 0 && now.Sub(list[0].since) >= idleTimeout {
			_ = list[0].Close()
			list = list[1:]
		}
		t.idle[host] = list
		if len(list) == 0 {
			delete(t.idle, host)
		}
	}
	if len(t.idle) > 0 {
		t.prune = time.AfterFunc(idleTimeout/2, t.closeOld)
	}
}

// CloseIdleConnections closes all that is idle.
func (t *directTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prune != nil {
		t.prune.Stop()
		t.prune = nil
	}
	for host, list := range t.idle {
		for _, c := range list {
			_ = c.Close()
		}
		delete(t.idle, host)
	}
}

// exchange writes the request and reads the head of its answer. The end of the request's context ends it, and the
// reading of the body after it.
func (t *directTransport) exchange(c *directConn, req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	resp, err := c.roundTrip(req)
	if err != nil {
		stop()
		_ = c.Close()
		return nil, err
	}
	c.left = math.MaxInt64
	resp.Body = &directBody{t: t, c: c, body: resp.Body, keep: !resp.Close && !req.Close, stop: stop, whole: resp.ContentLength == 0}
	return resp, nil
}

func (c *directConn) roundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Write(c.w); err != nil {
		return nil, err
	}
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	c.left = maxHead
	for {
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the server closed the connection without an answer")
			}
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		// Interim answers say nothing that matters here.
	}
}

// directBody is the body of an answer; the connection is kept once it has been read to its end.
type directBody struct {
	t     *directTransport
	c     *directConn
	body  io.ReadCloser
	keep  bool
	whole bool // read to the end
	stop  func() bool
	once  sync.Once
}

func (b *directBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	switch {
	case err == io.EOF:
		b.whole = true
	case err != nil:
		b.keep = false // the next read may give io.EOF for it
	}
	return n, err
}

// Close ends the use of the connection. It is called once, by the goroutine that reads.
func (b *directBody) Close() error {
	b.once.Do(func() {
		// Where the context has ended, the connection has a deadline that has passed, now or in a moment.
		if b.stop() && b.whole && b.keep && b.c.r.Buffered() == 0 {
			b.t.put(b.c)
			return
		}
		_ = b.c.Close()
	})
	return nil
}
