package proxy

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// pinning withholds tools that are not what somebody has approved. What it withholds is in no view, so that nothing can
// tell it from what was never there. It is used under the lock of the catalog.
type pinning struct {
	store *pins.Store
	log   *zap.Logger
	count *prometheus.CounterVec
	last  map[string]judgement // by upstream
}

// judgement is what a listing was last found to be, so that it is not compared at each merge.
type judgement struct {
	listing *listing
	pin     config.Pin
	gen     uint64
	waiting map[string]pins.Waiting
}

func newPinning(store *pins.Store, log *zap.Logger, reg prometheus.Registerer) *pinning {
	if store == nil {
		store = pins.New(nil, true)
	}
	p := &pinning{store: store, log: log, last: map[string]judgement{}, count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcp_proxy_pin_events_total", Help: "What has happened to the tools of pinned servers: trusted on first use, added, changed, restored, approved."},
		[]string{"upstream", "kind"})}
	reg.MustRegister(p.count)
	return p
}

// judge gives what is withheld, by upstream and wire name. There is an entry for each upstream that is pinned and has been
// listed.
func (p *pinning) judge(ups []*upstream.Upstream, listings map[string]*listing) map[string]map[string]pins.Waiting {
	out, next := map[string]map[string]pins.Waiting{}, map[string]judgement{}
	for _, u := range ups {
		if l := listings[u.ID]; l != nil && u.Config().Pinned() {
			j := p.judgeOne(u, l)
			next[u.ID], out[u.ID] = j, j.waiting
		}
	}
	p.last = next
	return out
}

func (p *pinning) judgeOne(u *upstream.Upstream, l *listing) judgement {
	pin, gen := u.Config().Pin, p.store.Generation()
	if last := p.last[u.ID]; last.listing == l && last.pin == pin && last.gen == gen {
		return last
	}
	look := pins.Look{Server: u.ID, Strict: pin == config.PinStrict}
	if u.Config().CatalogScope == config.ScopePrincipal || u.Config().CatalogScope == config.ScopeSession {
		look.Part = !l.someTools // some callers are offered more, and what waits of that goes on waiting
	} else {
		look.Whole = !l.someTools
	}
	v := p.judgeLook(u, l, look)
	return judgement{l, pin, gen, v.Waiting}
}

// judgeOwn gives what is withheld of what one caller is offered. It may be used without the lock.
func (p *pinning) judgeOwn(u *upstream.Upstream, l *listing) map[string]pins.Waiting {
	v := p.judgeLook(u, l, pins.Look{Server: u.ID, Strict: u.Config().Pin == config.PinStrict, Part: true})
	return v.Waiting
}

func (p *pinning) judgeLook(u *upstream.Upstream, l *listing, look pins.Look) pins.Verdict {
	for _, o := range l.offers[Tool] {
		look.Tools = append(look.Tools, pins.Tool{Name: o.wire, Raw: o.raw})
	}
	v := p.store.Judge(look)
	if v.Failed != nil {
		p.log.Error("the approvals of a server", zap.String("upstream", u.ID), zap.Error(v.Failed))
	}
	p.tell(u.ID, v.Events)
	return v
}

// maxPinLines bounds what is logged of one look at a server.
const maxPinLines = 20

// tell logs and counts what has happened to tools: one line for each that is withheld or back, one for all that count as
// approved.
func (p *pinning) tell(up string, events []pins.Event) {
	for _, k := range pins.Kinds {
		p.count.WithLabelValues(up, string(k))
	}
	approved := map[pins.Kind][]string{}
	lines := 0
	for _, e := range events {
		p.count.WithLabelValues(up, string(e.Kind)).Inc()
		if e.Kind == pins.Trusted || e.Kind == pins.Approved {
			approved[e.Kind] = append(approved[e.Kind], e.Tool)
			continue
		}
		if lines++; lines > maxPinLines {
			continue
		}
		fields := []zap.Field{zap.String("upstream", up), zap.String("tool", e.Tool), zap.String("definition", e.Hash)}
		switch e.Kind {
		case pins.Added:
			p.log.Warn("a new tool is withheld until it is approved", fields...)
		case pins.Changed:
			p.log.Warn("a tool has changed and is withheld until it is approved", append(fields, zap.Strings("changed", e.Members))...)
		default:
			p.log.Info("a tool is again what was approved and is offered", fields...)
		}
	}
	if lines > maxPinLines {
		p.log.Warn("more tools are withheld or back than are told here", zap.String("upstream", up), zap.Int("more", lines-maxPinLines))
	}
	for kind, text := range map[pins.Kind]string{pins.Trusted: "tools count as approved on first use", pins.Approved: "tools have been approved"} {
		if len(approved[kind]) > 0 {
			p.log.Info(text, zap.String("upstream", up), zap.Int("tools", len(approved[kind])), zap.Strings("names", approved[kind]))
		}
	}
}

// forget deletes the series of an upstream that there is no more.
func (p *pinning) forget(up string) { p.count.DeletePartialMatch(prometheus.Labels{"upstream": up}) }

// Reapprove looks for what other processes have approved, and offers it.
func (p *Proxy) Reapprove() {
	changed := p.pins.store.Reload()
	if len(changed) == 0 {
		return
	}
	for up, events := range changed {
		p.pins.tell(up, events)
	}
	p.catalog.again()
}

// again merges what is known anew, for reasons that lie outside the listings, and tells those whose view that changes.
func (c *catalog) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.snap.Load()
	after := c.merge(c.listings)
	c.snap.Store(after)
	if c.told == nil {
		c.announce(before, after)
	}
}

// Unapproved tells how many tools of each pinned upstream are withheld because nobody has approved them.
func (p *Proxy) Unapproved() map[string]int {
	out := map[string]int{}
	for up, waiting := range p.catalog.snap.Load().waiting {
		out[up] = len(waiting)
	}
	return out
}

// withheldPins reports the tools that are not approved.
func (m *merger) withheldPins() {
	for _, u := range m.ups {
		waiting := m.waiting[u.ID]
		if len(waiting) == 0 || m.listings[u.ID] == nil {
			continue
		}
		for _, o := range m.listings[u.ID].offers[Tool] {
			if w, ok := waiting[o.wire]; ok && exposes(u.Config(), o) {
				m.reportAs("", &Item{Kind: Tool, Wire: o.wire, Upstream: u, offer: o, Why: pinnedWhy(w)})
			}
		}
	}
}

// PinnedPrefix begins the reports of tools that nobody has approved.
const PinnedPrefix = "withheld, not approved: "

func pinnedWhy(w pins.Waiting) string {
	if w.New {
		return PinnedPrefix + "it is new"
	}
	return PinnedPrefix + "changed in " + strings.Join(w.Members, ", ")
}
