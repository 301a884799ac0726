package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Options are what the proxy needs from outside.
type Options struct {
	Upstreams *upstream.Set
	Shape
	Log      *zap.Logger
	Count    *count.Counters
	Registry prometheus.Registerer
	// Keys seal the ids of tasks: the first makes them, all open them. Without any, no other process knows ours.
	Keys [][]byte
	// ListGrace is how long a list, or a call of an unknown name, waits for upstreams that have just been started.
	ListGrace time.Duration
	// Memory keeps what upstreams offer over restarts; nil keeps nothing.
	Memory Memory
	// KeptResults bounds the results that are kept because they were too long for an answer.
	KeptResults config.KeptResults
	// Approvals tell which tools of pinned servers are offered; nil trusts what is there on first use, and forgets it.
	Approvals *pins.Store
}

// Proxy answers requests from the catalog or routes them to the upstream that owns what they are about. It is safe for
// concurrent use.
type Proxy struct {
	ups     *upstream.Set
	log     *zap.Logger
	count   *count.Counters
	metrics *Metrics
	catalog *catalog
	set     atomic.Pointer[settings]
	grace   time.Duration

	links    *links
	pins     *pinning
	stash    *stash
	taskIDs  *taskSealer
	board    *taskBoard
	pages    *pages
	levels   levels
	watching watching
	parked   *parkings
	visits   *visits
	overlays *overlays
	// base is the parent of calls that may outlive the request that brought them.
	base       context.Context
	endBase    context.CancelCauseFunc
	background sync.WaitGroup // what is told upstreams off everybody's path

	requestPrefix string
	requests      atomic.Uint64

	running context.Context // of the keeping of the catalog; nil before Start
	cancel  context.CancelFunc
	runs    sync.WaitGroup
}

// New makes a proxy. The upstreams must have been made with the proxy's [Relay] as their observer.
func New(o Options, relay *Relay) *Proxy {
	s := newSettings(o.Upstreams.All(), o.Shape)
	p := &Proxy{ups: o.Upstreams, log: o.Log, count: o.Count, grace: o.ListGrace,
		metrics: NewMetrics(o.Registry, s.ids), catalog: newCatalog(o.Upstreams.All(), o.Log, o.Count), cancel: func() {}}
	p.set.Store(s)
	p.pins = newPinning(o.Approvals, o.Log, o.Registry)
	p.stash = newStash(o.KeptResults, o.Count)
	p.links, p.pages, p.parked, p.visits = newLinks(), newPages(), newParkings(), newVisits()
	p.overlays = newOverlays(p)
	p.catalog.onRebase, p.catalog.onShared = p.overlays.rebased, p.overlays.shared
	p.base, p.endBase = context.WithCancelCause(context.Background())
	p.watching.of = map[source]map[string]*watch{}
	p.taskIDs, p.board = newTaskSealer(o.Keys), newTaskBoard()
	p.catalog.onUpdate, p.catalog.onTask = func(u *upstream.Upstream, uri string) { p.updated(source{up: u}, uri) }, p.taskNews
	p.catalog.onOwn = p.ownNews
	p.catalog.onRefused = func(u *upstream.Upstream, method string) { p.metrics.serverRequest(u.ID, method, Denied) }
	p.requestPrefix = randomPrefix()
	p.catalog.merge = func(l map[string]*listing) *snapshot {
		for id, listed := range l {
			if listed.peer.RunsTasks {
				p.metrics.runsTasks(id)
			}
		}
		m := p.merger(l)
		m.follow(p.catalog.snap.Load())
		m.waiting = p.pins.judge(m.ups, l)
		return m.build()
	}
	p.catalog.memory = o.Memory
	for _, u := range s.ups {
		p.catalog.restore(u)
	}
	p.catalog.snap.Store(p.catalog.merge(p.catalog.listings))
	relay.to.Store(p.catalog)
	o.Registry.MustRegister(itemCollector{p})
	return p
}

// merger merges these listings by the settings of this moment.
func (p *Proxy) merger(l map[string]*listing) *merger {
	s := p.set.Load()
	tail := func(v *view, k Kind) []byte { return p.tail(l, v, k) }
	return newMerger(s, l, p.log, tail)
}

// selectionsOf lists the views: everything, each profile, each upstream.
func selectionsOf(shape Shape, ids []string) []selection {
	out := []selection{{key: ViewAll, lazy: shape.Lazy}}
	for _, name := range slices.Sorted(maps.Keys(shape.Profiles)) {
		pr := shape.Profiles[name]
		sel := selection{key: ProfileView(name), servers: append([]string{}, pr.Servers...), lazy: shape.Lazy,
			policy: policies{pr.ToolPolicy, pr.PromptPolicy, pr.ResourcePolicy}, naming: pr.Naming, profile: name, instructions: pr.Instructions}
		if pr.Lazy != nil {
			sel.lazy, sel.whole = pr.Lazy, !pr.Lazy.On()
		}
		out = append(out, sel)
	}
	for _, id := range ids {
		out = append(out, selection{key: ServerView(id), servers: []string{id}, raw: true})
	}
	return out
}

// Relay passes what upstreams announce to the proxy that is made after them.
type Relay struct {
	to atomic.Pointer[catalog]
}

// Notification implements upstream.Observer.
func (r *Relay) Notification(u *upstream.Upstream, f *wire.Frame) {
	if c := r.to.Load(); c != nil {
		c.Notification(u, f)
	}
}

// Refused implements upstream.Observer.
func (r *Relay) Refused(u *upstream.Upstream, method string) {
	if c := r.to.Load(); c != nil {
		c.onRefused(u, method)
	}
}

// Asked implements upstream.Observer.
func (r *Relay) Asked(ctx context.Context, u *upstream.Upstream, session string, f *wire.Frame) ([]byte, bool) {
	if c := r.to.Load(); c != nil {
		return c.onAsked(ctx, u, session, f)
	}
	return nil, false
}

// Said implements upstream.Observer.
func (r *Relay) Said(u *upstream.Upstream, session string, f *wire.Frame) {
	if c := r.to.Load(); c != nil {
		c.onSaid(u, session, f)
	}
}

// OwnReady implements upstream.OwnObserver.
func (r *Relay) OwnReady(u *upstream.Upstream, of upstream.Owner) { r.own(u, of, nil, ownReady) }

// OwnEnded implements upstream.OwnObserver.
func (r *Relay) OwnEnded(u *upstream.Upstream, of upstream.Owner) { r.own(u, of, nil, ownEnded) }

// OwnNews implements upstream.OwnObserver.
func (r *Relay) OwnNews(u *upstream.Upstream, of upstream.Owner, f *wire.Frame) bool {
	return r.own(u, of, f, ownSays)
}

func (r *Relay) own(u *upstream.Upstream, of upstream.Owner, f *wire.Frame, what ownEvent) bool {
	c := r.to.Load()
	return c != nil && c.onOwn(u, of, f, what)
}

// Changed implements upstream.Observer.
func (r *Relay) Changed(u *upstream.Upstream) {
	if c := r.to.Load(); c != nil {
		c.Changed(u)
	}
}

// OnChange sets what hears that the items of a view have changed. It is called before Start, and must not block.
func (p *Proxy) OnChange(f func(view string, changed Changes)) {
	p.catalog.onChange = func(view string, c [kinds]bool) {
		f(view, changesOf(c))
	}
	p.catalog.onInsist = func(view string, c [kinds]bool) {
		f(view, Changes{Tools: c[Tool], Prompts: c[Prompt], Resources: c[Resource] || c[Template], Unseen: true})
	}
}

// Changes tells which lists of a view have changed, and which resources that a client watches.
type Changes struct {
	Tools, Prompts, Resources bool
	// Unseen says that the lists do not show what has changed: the server has announced it, and only modern clients are
	// told.
	Unseen  bool
	Updated []string // URIs as the client knows them
	Tasks   []TaskNews
}

// Start begins to keep the catalog.
func (p *Proxy) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.running, p.cancel = ctx, cancel
	for _, r := range p.catalog.all() {
		p.keep(r)
	}
	p.runs.Go(func() { p.overlays.run(ctx) })
	p.runs.Go(func() {
		sleep(ctx, p.grace)
		p.catalog.settle()
	})
}

// keep begins to refresh one upstream.
func (p *Proxy) keep(r *refresher) {
	ctx, cancel := context.WithCancel(p.running)
	r.stop = cancel
	p.runs.Go(func() {
		defer cancel()
		p.catalog.run(ctx, r)
	})
}

// EndParked ends the calls that wait for their clients, and tells their upstreams. It is called while these are still
// there, and no more requests come.
func (p *Proxy) EndParked() { p.parked.stop() }

// Stop ends the keeping of the catalog and waits for it.
func (p *Proxy) Stop() {
	p.cancel()
	p.EndParked()
	p.stash.stop()
	p.endBase(CauseShutdown)
	p.runs.Wait()
	p.background.Wait()
}

// Settled is closed once every upstream has been listed or has failed for the first time, or the grace is over.
func (p *Proxy) Settled() <-chan struct{} { return p.catalog.settled }

// HasView says whether there is a view of that key.
func (p *Proxy) HasView(key string) bool { return p.catalog.snap.Load().views[key] != nil }

// Names reports the final names.
func (p *Proxy) Names() []NameReport { return p.catalog.snap.Load().names }

// Conflicts gives the reports of names that are taken twice where the configuration calls that an error.
func (p *Proxy) Conflicts() (out []NameReport) {
	for _, n := range p.Names() {
		if len(n.Why) > len(conflictPrefix) && n.Why[:len(conflictPrefix)] == conflictPrefix {
			out = append(out, n)
		}
	}
	return out
}

// Counts tells how much each upstream offers, by kind.
func (p *Proxy) Counts() map[string][4]int {
	out := map[string][4]int{}
	for _, u := range p.ups.All() {
		out[u.ID] = [4]int{}
	}
	for _, items := range p.catalog.snap.Load().views[ViewAll].items {
		for _, it := range items {
			if it.Upstream != nil {
				n := out[it.Upstream.ID]
				n[it.Kind]++
				out[it.Upstream.ID] = n
			}
		}
	}
	return out
}

// ListFailure tells why the lists of an upstream are not whole; nil where they are.
func (p *Proxy) ListFailure(id string) error {
	l := p.catalog.listing(id)
	if l == nil {
		return nil
	}
	if u := p.ups.Get(id); u != nil {
		return l.fault(u.Config())
	}
	return l.partial
}

// Listed says whether the lists of an upstream are known, or there are none but those of single callers.
func (p *Proxy) Listed(id string) bool { return p.catalog.listing(id) != nil || p.listsForNobody(id) }

// listsForNobody says whether an upstream refuses to list for anybody without a credential.
func (p *Proxy) listsForNobody(id string) bool {
	u := p.ups.Get(id)
	return u != nil && u.AsksCallers() != nil
}

func randomPrefix() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func (p *Proxy) requestID() string {
	return p.requestPrefix + "-" + strconv.FormatUint(p.requests.Add(1), 36)
}

// serverInfo is the raw object of what we call ourselves.
func serverInfo(s config.ServerInfo) []byte {
	b := wire.AppendString([]byte(`{"name":`), s.Name)
	b = wire.AppendString(append(b, `,"version":`...), s.Version)
	if s.Title != "" {
		b = wire.AppendString(append(b, `,"title":`...), s.Title)
	}
	return append(b, '}')
}
