package session

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// backend is an upstream in this process with one tool, which does what the test wants.
type backend struct {
	// tool runs in a goroutine of its own and gives the members of the answer; nothing for no answer.
	tool func(say func(method, params string)) string

	calls sync.WaitGroup

	mu    sync.Mutex
	tools string
	seen  []string
	w     io.Writer
}

func (b *backend) serve(ctx context.Context, rw io.ReadWriteCloser) error {
	defer rw.Close()
	b.mu.Lock()
	b.w = rw
	b.mu.Unlock()
	lines := bufio.NewScanner(rw)
	for lines.Scan() {
		f, err := wire.Parse(slices.Clone(lines.Bytes()), wire.Upstream, wire.Limits{})
		if err != nil {
			return err
		}
		b.mu.Lock()
		b.seen = append(b.seen, f.Method)
		b.mu.Unlock()
		id := string(f.ID.Of(f.Raw))
		reply := func(member string) { _, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, member) }
		switch f.Method {
		case "initialize":
			reply(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"b","version":"1"}}`)
		case "tools/list":
			b.mu.Lock()
			list := b.tools
			b.mu.Unlock()
			reply(`"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}` + list + `]}`)
		case "tools/call":
			b.calls.Go(func() {
				if member := b.tool(func(method, params string) {
					_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","method":"%s","params":%s}`+"\n", method, strings.ReplaceAll(params, "TOKEN", id))
				}); member != "" {
					reply(member)
				}
			})
		default:
			if f.Kind == wire.KindRequest {
				reply(`"error":{"code":-32601,"message":"no"}`)
			}
		}
	}
	return ctx.Err()
}

// change adds a tool and announces it.
func (b *backend) change() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools += fmt.Sprintf(`,{"name":"t%d","inputSchema":{"type":"object"}}`, len(b.tools))
	_, _ = io.WriteString(b.w, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n")
}

func (b *backend) received(method string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.seen {
		if m == method {
			n++
		}
	}
	return n
}

func quick(func(string, string)) string { return `"result":{"content":[]}` }

func never(func(string, string)) string { return "" }

func after(d time.Duration) func(func(string, string)) string {
	return func(func(string, string)) string {
		pass(d)
		return `"result":{"content":[]}`
	}
}

// stage is a manager before one upstream.
type stage struct {
	t   *testing.T
	b   *backend
	m   *Manager
	p   *proxy.Proxy
	ups *upstream.Set
	reg *prometheus.Registry

	mu    sync.Mutex
	ended []string
}

// newStage makes and starts everything; change may change the options of the manager.
func newStage(t *testing.T, b *backend, change func(*Options)) *stage {
	t.Helper()
	if b.tool == nil {
		b.tool = quick
	}
	st := &stage{t: t, b: b, reg: prometheus.NewRegistry()}
	counters := count.New(st.reg)
	um := upstream.NewMetrics(st.reg)
	relay := &proxy.Relay{}
	limits := config.Limits{MaxFrameBytes: 1 << 20, MaxSessions: 100, MaxStreams: 100, MaxInFlight: 100, MaxBufferedBytes: 1 << 24}
	cfg := &config.Server{ID: "b", Transport: config.TransportInProcess, Protocol: config.ProtocolLegacy, Sharing: config.SharingShared, Instances: 1, ReinitOnExpiredSession: true,
		ConnectTimeout: 15 * time.Second, CallTimeout: 2 * time.Minute, MaxCallTime: 30 * time.Minute,
		Restart: config.Restart{InitialDelay: time.Second, MaxDelay: time.Minute, Multiplier: 2, HealthyAfter: 30 * time.Second}}
	u := upstream.New(cfg, upstream.Options{Log: zap.NewNop(), Count: counters, Metrics: um, Budget: upstream.NewBudget(1 << 24), Limits: limits, Observer: relay, Serve: b.serve, Version: "1"})
	st.ups = upstream.NewSet([]*upstream.Upstream{u}, um, st.reg)
	st.p = proxy.New(proxy.Options{Upstreams: st.ups, Shape: proxy.Shape{Naming: config.Naming{Mode: config.NamingNone, Template: "{server}__{tool}", MaxLength: 64},
		Server: config.ServerInfo{Name: "p", Version: "1"}}, Log: zap.NewNop(), Count: counters, Registry: st.reg, ListGrace: time.Second}, relay)
	o := Options{Proxy: st.p, Limits: limits, Log: zap.NewNop(), Count: counters, Registry: st.reg, StreamAfter: 3 * time.Second, KeepAlive: 15 * time.Second,
		Sessions: config.Sessions{IdleTimeout: 30 * time.Minute, MaxAge: 24 * time.Hour, ResumeWindow: 30 * time.Second, ResumeBufferBytes: 1 << 20},
		Ended: func(unit string) {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.ended = append(st.ended, unit)
		}}
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	st.m = m
	st.p.Start()
	st.ups.Start()
	m.Start()
	<-st.p.Settled()
	return st
}

func (st *stage) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	st.m.Drain(ctx)
	st.m.Stop()
	st.ups.Stop()
	st.p.Stop()
	st.b.calls.Wait()
}

func (st *stage) endedUnits() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.ended)
}

func (st *stage) metric(name string, pairs ...string) float64 {
	st.t.Helper()
	return testmcp.Series(st.t, st.reg, name, pairs...)
}

// response is an HTTP request under way and what has come back, without a network.
type response struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the handler has returned

	mu       sync.Mutex
	header   http.Header
	sent     http.Header
	status   int
	body     bytes.Buffer
	broken   bool
	deadline time.Time
}

func (r *response) Header() http.Header { return r.header }

func (r *response) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *response) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
		panic("written after the handler has returned")
	default:
	}
	if r.broken {
		return 0, errors.New("the client does not read")
	}
	return r.body.Write(b)
}

func (r *response) Flush() {}

func (r *response) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = t
	return nil
}

// breaks lets all further writes fail.
func (r *response) breaks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

func (r *response) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.String()
}

func (r *response) kind() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent.Get("Content-Type")
}

func (r *response) code() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *response) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait gives the response once it is complete.
func (r *response) wait() *response {
	<-r.done
	return r
}

// data gives the data of the events of a stream.
func (r *response) data() (out []string) {
	for line := range strings.SplitSeq(r.text(), "\n") {
		if d, ok := strings.CutPrefix(line, "data: "); ok && d != "" {
			out = append(out, d)
		}
	}
	return out
}

func (r *response) comments() int {
	n := 0
	for line := range strings.SplitSeq(r.text(), "\n") {
		if strings.HasPrefix(line, ":") {
			n++
		}
	}
	return n
}

// client is who sends requests: headers that each of them has.
type client struct {
	st        *stage
	principal string
	view      string
	header    http.Header
}

func (st *stage) client() *client {
	return &client{st: st, header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}}
}

// with gives a client that differs in these headers; an empty value takes one away.
func (c client) with(pairs ...string) *client {
	c.header = c.header.Clone()
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			c.header.Del(pairs[i])
			continue
		}
		c.header.Set(pairs[i], pairs[i+1])
	}
	return &c
}

// do begins an HTTP request.
func (c *client) do(verb, body string) *response {
	ctx, cancel := context.WithCancel(context.Background())
	r := &response{cancel: cancel, done: make(chan struct{}), header: http.Header{}}
	req, err := http.NewRequestWithContext(ctx, verb, "http://proxy.test/mcp", strings.NewReader(body))
	if err != nil {
		c.st.t.Fatal(err)
	}
	req.Header = c.header.Clone()
	go func() {
		defer cancel()
		c.st.m.ServeHTTP(r, req, c.view, c.principal)
		close(r.done)
	}()
	return r
}

func (c *client) post(body string) *response { return c.do(http.MethodPost, body) }

// open begins a legacy session and gives a client that uses it.
func (c *client) open(version string) *client {
	c.st.t.Helper()
	r := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).wait()
	id := r.sent.Get("Mcp-Session-Id")
	if r.code() != 200 || id == "" {
		c.st.t.Fatalf("initialize gives %d %s", r.code(), r.text())
	}
	return c.with("Mcp-Session-Id", id)
}

// modern gives a client of the stateless era for this method and name.
func (c *client) modern(method, name string) *client {
	return c.with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", name)
}

const (
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	callT      = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t"}}`
	callModern = `{"jsonrpc":"2.0","id":"A","method":"tools/call","params":{"name":"t",` + modernMeta + `}}`
	ping       = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

// pass lets time go by, in a bubble of synctest where it costs none.
func pass(d time.Duration) { <-time.After(d) }
