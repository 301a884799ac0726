package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// program is a server in this process that follows a script. Each time it is started it is another instance.
type program struct {
	t   testing.TB
	era wire.Era
	// start is called before anything is read; false ends the instance at once.
	start func(n int) bool
	// on deals with a request or notification; false leaves it to the program. Ending the instance is done by closing w.
	on func(n int, f *wire.Frame, w io.WriteCloser) bool

	mu      sync.Mutex
	started int
	live    int
	seen    []string
}

func (p *program) serve(ctx context.Context, rw io.ReadWriteCloser) error {
	p.mu.Lock()
	p.started++
	p.live++
	n := p.started
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.live--
		p.mu.Unlock()
	}()
	defer rw.Close()
	if p.start != nil && !p.start(n) {
		return nil
	}
	lines := bufio.NewScanner(rw)
	for lines.Scan() {
		f, err := wire.Parse(slices.Clone(lines.Bytes()), wire.Upstream, wire.Limits{})
		if err != nil {
			p.t.Errorf("the server was sent %q: %v", lines.Bytes(), err)
			continue
		}
		p.mu.Lock()
		p.seen = append(p.seen, f.Method)
		p.mu.Unlock()
		if p.on != nil && p.on(n, f, rw) {
			continue
		}
		p.answer(n, f, rw)
	}
	return ctx.Err()
}

// answer does what a plain server of the era does.
func (p *program) answer(n int, f *wire.Frame, w io.Writer) {
	if f.Kind != wire.KindRequest {
		return
	}
	member := noMethod
	switch {
	case f.Method == "initialize" && p.era == wire.Legacy:
		member = legacyAnswer
	case f.Method == "server/discover" && p.era == wire.Modern:
		member = modernAnswer
	case f.Method == "tools/call":
		member = fmt.Sprintf(`"result":{"instance":%d}`, n)
	}
	reply(w, f, member)
}

func reply(w io.Writer, f *wire.Frame, member string) {
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", f.ID.Of(f.Raw), member)
}

func (p *program) starts() (started, live int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started, p.live
}

func (p *program) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// heard records what an upstream tells its observer.
type heard struct {
	mu      sync.Mutex
	changes int
	notes   []string
}

func (h *heard) Notification(_ *Upstream, f *wire.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, f.Method)
}

func (h *heard) Refused(_ *Upstream, method string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, "refused "+method)
}

func (h *heard) Asked(context.Context, *Upstream, string, *wire.Frame) ([]byte, bool) {
	return nil, false
}

func (h *heard) Said(_ *Upstream, _ string, f *wire.Frame) { h.Notification(nil, f) }

func (h *heard) Changed(*Upstream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
}

func (h *heard) all() (changes int, notes []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes, slices.Clone(h.notes)
}

// remembered is a Memory.
type remembered struct {
	mu   sync.Mutex
	eras map[string]string
}

func (m *remembered) Era(def string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.eras[def]
	return e, ok
}

func (m *remembered) SetEra(def, era string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.eras == nil {
		m.eras = map[string]string{}
	}
	m.eras[def] = era
}

// startUpstream makes and starts an upstream over a program.
func startUpstream(t *testing.T, r *rig, p *program, change func(*config.Server, *Options)) *Upstream {
	t.Helper()
	cfg := serverConfig(config.TransportInProcess)
	o := Options{Log: zap.NewNop(), Count: r.count, Metrics: NewMetrics(r.reg), Budget: r.budget, Limits: config.Limits{MaxFrameBytes: 1 << 20}, Serve: p.serve, Version: "1"}
	if change != nil {
		change(cfg, &o)
	}
	u := New(cfg, o)
	u.Start()
	return u
}

// instance calls the server and tells which instance of it answers.
func instance(t *testing.T, u *Upstream, unit Unit) (string, error) {
	t.Helper()
	l, err := u.Acquire(t.Context(), unit)
	if err != nil {
		return "", err
	}
	defer l.Release()
	return callOn(t, u, l), nil
}

func callOn(t *testing.T, u *Upstream, l *Lease) string {
	t.Helper()
	id := u.NextID()
	x, err := l.Start(t.Context(), &Outgoing{ID: id, Method: "tools/call", Frame: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id)})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close(false)
	f := answerOf(t.Context(), t, x)
	return string(f.Body.Get(f.Raw, "instance").Of(f.Raw))
}
