package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// parsed makes a frame of an upstream.
func parsed(t testing.TB, text string) *wire.Frame {
	t.Helper()
	f, err := wire.Parse([]byte(text), wire.Upstream, wire.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// rig is what a connection needs, with everything it does to its surroundings recorded.
type rig struct {
	t      testing.TB
	reg    *prometheus.Registry
	count  *count.Counters
	budget *Budget
	env    *env

	mu    sync.Mutex
	notes []string // notifications that belong to no call
}

const rigBudget = 64 << 20

func newRig(t testing.TB) *rig {
	r := &rig{t: t, reg: prometheus.NewRegistry(), budget: NewBudget(rigBudget)}
	r.count = count.New(r.reg)
	r.env = &env{id: "up", log: zap.NewNop(), count: r.count, budget: r.budget, peer: r, noisy: &sync.Once{}, moved: &sync.Once{}, maxFrame: 1 << 20}
	return r
}

func (r *rig) Notification(f *wire.Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, f.Method)
}

func (r *rig) Refused(*wire.Frame, bool) { r.count.Drop(count.DropRequest) }

func (r *rig) Missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, "missed")
}

func (r *rig) noted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

func (r *rig) dropped(what string) float64 {
	return metric(r.t, r.reg, "mcp_proxy_dropped_total", "what", what)
}

func (r *rig) limit(name string) float64 {
	return metric(r.t, r.reg, "mcp_proxy_limit_exceeded_total", "limit", name)
}

// wantBudgetWhole fails where something was taken of the budget and not given back.
func (r *rig) wantBudgetWhole() {
	r.t.Helper()
	if left := r.budget.left.Load(); left != rigBudget {
		r.t.Errorf("%d bytes of the budget were not given back", rigBudget-left)
	}
}

// metric reads one value of a registry: pairs are label names and values.
func metric(t testing.TB, reg prometheus.Gatherer, name string, pairs ...string) float64 {
	t.Helper()
	return testmcp.Series(t, reg, name, pairs...)
}

// wantReason fails unless err is an *Error with that reason.
func wantReason(t testing.TB, err error, want Reason) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v (%T), want an *Error with reason %s", err, err, want)
	}
	if e.Reason != want {
		t.Errorf("the reason is %s (%v), want %s", e.Reason, err, want)
	}
	return e
}

// serverConfig is a configuration as the config room gives it.
func serverConfig(transport config.Transport) *config.Server {
	return &config.Server{
		ID: "up", Transport: transport, Protocol: config.ProtocolAuto, Sharing: config.SharingShared, Instances: 1, ReinitOnExpiredSession: true,
		ConnectTimeout: 15 * time.Second, CallTimeout: 2 * time.Minute, MaxCallTime: 30 * time.Minute,
		Restart: config.Restart{InitialDelay: time.Second, MaxDelay: time.Minute, Multiplier: 2, HealthyAfter: 30 * time.Second},
	}
}

// answerOf reads a call to its answer, through what comes before it.
func answerOf(ctx context.Context, t testing.TB, x Exchange) *wire.Frame {
	t.Helper()
	for {
		f, err := x.Next(ctx)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		if f.Kind == wire.KindResponse || f.Kind == wire.KindError {
			return f
		}
	}
}

// pass lets time go by, in a bubble of synctest where it costs none.
func pass(d time.Duration) { <-time.After(d) }
