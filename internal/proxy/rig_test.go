package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// metricOf reads one value of a registry: pairs are label names and values.
func metricOf(t testing.TB, reg prometheus.Gatherer, name string, pairs ...string) float64 {
	t.Helper()
	return testmcp.Series(t, reg, name, pairs...)
}

// server is an upstream in this process that follows a script. Its lists may be changed while it runs.
type server struct {
	id  string
	era wire.Era
	// on answers a request: the members beside jsonrpc and id, or nothing to leave it unanswered; false leaves it to the server.
	on func(f *wire.Frame, w io.Writer) (member string, done bool)
	// caps are its capabilities; those of its lists where it is empty.
	caps string

	mu    sync.Mutex
	lists [kinds][]string
	seen  []string // requests and notifications, as they came
	w     io.Writer
}

const allCaps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true},"logging":{},"completions":{}}`

func (s *server) set(k Kind, items ...string) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[k] = items
	return s
}

// tools sets plain tools of these names.
func (s *server) tools(names ...string) *server {
	var items []string
	for _, n := range names {
		items = append(items, tool(n))
	}
	return s.set(Tool, items...)
}

func tool(name string) string {
	return string(wire.AppendString([]byte(`{"name":`), name)) + `,"inputSchema":{"type":"object"}}`
}

// notify sends a notification on the server's own account.
func (s *server) notify(method, params string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.w, `{"jsonrpc":"2.0","method":"%s","params":%s}`+"\n", method, params)
}

func (s *server) received(method string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, raw := range s.seen {
		if strings.Contains(raw, `"method":"`+method+`"`) {
			out = append(out, raw)
		}
	}
	return out
}

func (s *server) serve(ctx context.Context, rw io.ReadWriteCloser) error {
	defer rw.Close()
	s.mu.Lock()
	s.w = rw
	s.mu.Unlock()
	lines := bufio.NewScanner(rw)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		f, err := wire.Parse(slices.Clone(lines.Bytes()), wire.Upstream, wire.Limits{})
		if err != nil {
			return fmt.Errorf("%s: %w", lines.Bytes(), err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, string(f.Raw))
		s.mu.Unlock()
		if f.Kind != wire.KindRequest {
			continue
		}
		member, done := "", false
		if s.on != nil {
			member, done = s.on(f, rw)
		}
		if !done {
			member = s.answer(f)
		}
		if member != "" {
			_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", f.ID.Of(f.Raw), member)
		}
	}
	return ctx.Err()
}

func (s *server) answer(f *wire.Frame) string {
	caps := s.caps
	if caps == "" {
		caps = allCaps
	}
	switch {
	case f.Method == "initialize" && s.era == wire.Legacy:
		return `"result":{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"serverInfo":{"name":"` + s.id + `","version":"1"},"instructions":"of ` + s.id + `"}`
	case f.Method == "server/discover" && s.era == wire.Modern:
		return `"result":{"supportedVersions":["2026-07-28"],"capabilities":` + caps + `,"instructions":"of ` + s.id + `"}`
	case f.Method == "tools/call":
		return `"result":{"content":[{"type":"text","text":"of ` + s.id + `"}]}`
	}
	for k := range kinds {
		if kindInfo[k].method == f.Method {
			s.mu.Lock()
			defer s.mu.Unlock()
			return `"result":{"` + kindInfo[k].list + `":[` + strings.Join(s.lists[k], ",") + `]}`
		}
	}
	return `"error":{"code":-32601,"message":"no such method"}`
}

// stage is a proxy before servers in this process.
type stage struct {
	t   *testing.T
	p   *Proxy
	ups *upstream.Set
	reg *prometheus.Registry

	mu      sync.Mutex
	changes []string // view and kinds of each change
}

func serverConfig(id string) *config.Server {
	return &config.Server{
		ID: id, Transport: config.TransportInProcess, Protocol: config.ProtocolAuto, Sharing: config.SharingShared, Instances: 1, ReinitOnExpiredSession: true,
		ConnectTimeout: 15 * time.Second, CallTimeout: 2 * time.Minute, MaxCallTime: 30 * time.Minute,
		Restart: config.Restart{InitialDelay: time.Second, MaxDelay: time.Minute, Multiplier: 2, HealthyAfter: 30 * time.Second},
	}
}

// newStage makes a proxy before these servers and starts it; change may change the configuration of each.
func newStage(t *testing.T, o Options, change func(*config.Server), servers ...*server) *stage {
	t.Helper()
	st := &stage{t: t, reg: prometheus.NewRegistry()}
	counters := count.New(st.reg)
	m := upstream.NewMetrics(st.reg)
	relay := &Relay{}
	var all []*upstream.Upstream
	for _, s := range servers {
		cfg := serverConfig(s.id)
		if change != nil {
			change(cfg)
		}
		all = append(all, upstream.New(cfg, upstream.Options{Log: zap.NewNop(), Count: counters, Metrics: m, Budget: upstream.NewBudget(1 << 24),
			Limits: config.Limits{MaxFrameBytes: 1 << 22}, Observer: relay, Serve: s.serve, Version: "1"}))
	}
	st.ups = upstream.NewSet(all, m, st.reg)
	o.Upstreams, o.Log, o.Count, o.Registry = st.ups, zap.NewNop(), counters, st.reg
	if o.Naming.Mode == "" {
		o.Naming = naming(config.NamingAlways)
	}
	if o.Server.Name == "" {
		o.Server = config.ServerInfo{Name: "proxy", Version: "1"}
	}
	if o.ListGrace == 0 {
		o.ListGrace = 2 * time.Second
	}
	st.p = New(o, relay)
	st.p.OnChange(func(view string, c Changes) {
		if c.Unseen {
			return // these tests are about what the lists show
		}
		st.mu.Lock()
		defer st.mu.Unlock()
		st.changes = append(st.changes, fmt.Sprintf("%s %v %v %v", view, c.Tools, c.Prompts, c.Resources))
	})
	st.p.Start()
	st.ups.Start()
	return st
}

func (st *stage) stop() {
	st.ups.Stop()
	st.p.Stop()
}

// told gives the changes of a view since the last time, and forgets all.
func (st *stage) told(view string) (out []string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, c := range st.changes {
		if rest, ok := strings.CutPrefix(c, view+" "); ok {
			out = append(out, rest)
		}
	}
	st.changes = nil
	return out
}

// listener is a sink that keeps what it is told.
type listener struct {
	Sink
	mu  sync.Mutex
	got []string
}

func (l *listener) Notify(frame []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, string(frame))
}

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

func legacyCaller() *Caller {
	return &Caller{Era: wire.Legacy, Version: wire.LatestLegacy, Unit: "session/1"}
}

func modernCaller() *Caller { return &Caller{Era: wire.Modern, Version: wire.LatestModern} }

// request runs one request of a client and gives its answer.
func (st *stage) request(c *Caller, sink *listener, raw string) Answer {
	st.t.Helper()
	ctx, cancel := context.WithCancelCause(st.t.Context())
	defer cancel(nil)
	return st.requestIn(ctx, cancel, c, sink, raw)
}

func (st *stage) requestIn(ctx context.Context, cancel context.CancelCauseFunc, c *Caller, sink *listener, raw string) Answer {
	st.t.Helper()
	f, err := wire.Parse([]byte(raw), wire.Downstream, wire.Limits{})
	if err != nil {
		st.t.Fatalf("%s: %v", raw, err)
	}
	if sink == nil {
		sink = &listener{}
	}
	a := st.p.Handle(ctx, cancel, &Request{Caller: c, Frame: f, Sink: sink})
	out := a
	out.parts = [3][]byte{slices.Clone(a.Bytes())}
	out.frame = nil
	a.Release()
	return out
}

// text is the answer to a request as it goes out.
func (st *stage) text(c *Caller, raw string) string {
	st.t.Helper()
	a := st.request(c, nil, raw)
	return string(a.Bytes())
}

// listed gives the names of a list in a view.
func (st *stage) listed(view string, k Kind) string {
	st.t.Helper()
	c := legacyCaller()
	c.View = view
	a := st.request(c, nil, `{"jsonrpc":"2.0","id":1,"method":"`+kindInfo[k].method+`"}`)
	f, err := wire.Parse(a.Bytes(), wire.Upstream, wire.Limits{})
	if err != nil {
		st.t.Fatalf("%s: %v", a.Bytes(), err)
	}
	var names []string
	for _, e := range wire.Elements(f.Raw, f.Body.Get(f.Raw, kindInfo[k].list)) {
		obj, _ := wire.ObjectAt(f.Raw, e)
		name, _ := wire.DecodeString(obj.Get(f.Raw, kindInfo[k].id).Of(f.Raw))
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// pass lets time go by, in a bubble of synctest where it costs none.
func pass(d time.Duration) { <-time.After(d) }
