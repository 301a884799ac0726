package upstream

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/credentials"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream/roundtrip"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Observer hears of an upstream what belongs to no call. Its methods are called from the goroutines that read and must
// not block.
type Observer interface {
	// Notification is a notification that came outside any call, on a connection that everybody shares.
	Notification(u *Upstream, f *wire.Frame)
	// Refused says that a request of the upstream belongs to no call and was refused.
	Refused(u *Upstream, method string)
	// Asked brings a request that came outside of any call, on a connection that belongs to that session, to its client
	// and gives the answer; false where the client cannot be asked. It waits for the answer as long as ctx lasts.
	Asked(ctx context.Context, u *Upstream, session string, f *wire.Frame) (answer []byte, ok bool)
	// Said passes on a notification that came that way.
	Said(u *Upstream, session string, f *wire.Frame)
	// Changed says that a shared connection of the upstream was made, lost or renewed.
	Changed(u *Upstream)
}

// Memory keeps what was learnt of upstreams over restarts. Its methods must not block for long.
type Memory interface {
	Era(definition string) (string, bool)
	SetEra(definition, era string)
}

// Options are what an upstream needs from outside.
type Options struct {
	Log      *zap.Logger
	Count    *count.Counters
	Metrics  *Metrics
	Budget   *Budget
	Limits   config.Limits
	Quota    *Quota
	Observer Observer
	Tasks    TaskObserver // nil where nobody wants to hear of tasks
	Own      OwnObserver  // nil where nobody wants to hear of connections that are somebody's own
	Memory   Memory
	Ledger   process.Ledger // nil where children are not recorded
	// Serve is the server behind a configuration of the in-process transport.
	Serve   InProcess
	Version string
}

// Upstream is one configured server: its slots and what is known of it. It is safe for concurrent use.
type Upstream struct {
	ID string

	cfg     *config.Server
	opts    Options
	log     *zap.Logger
	rt      transport
	tokens  *credentials.Tokens // by which the proxy signs in; nil where it has none
	serve   InProcess
	version string
	mask    *masker
	bound   []string // names of headers that are part of a caller's credentials
	noisy   sync.Once
	moved   sync.Once
	unclear atomic.Int64 // refused requests of which nobody could tell whose they are

	ids       atomic.Uint64
	probing   chan struct{} // held while the era is being found
	speaksSSE atomic.Bool   // found to speak only the older HTTP transport

	ctx    context.Context
	cancel context.CancelFunc
	runs   group
	off    group // what is sent off anybody's path
	use    use
	brood  process.Brood
	spoken *process.Tail // the stderr of the last run of a program that is no server
	gate   gate          // max_concurrency
	single gate          // serialize
	lone   gate          // calls with credentials, where each has a connection of its own

	mu      sync.Mutex
	era     *wire.Era
	shared  []*slot
	keyed   map[string]*slot
	spare   *slot         // connected for the next unit, with prewarm
	changed chan struct{} // closed and replaced with every change of a slot
	first   chan struct{} // closed once the first attempt has ended
	failure *Failure
	// listFailure is why the lists that were fetched last are not whole; nil where they are.
	listFailure *Failure
	retiring    bool               // it is in the configuration no more
	wishes      *wishes            // on the first connection that everybody shares
	wishesOf    map[string]*wishes // on the connections that list for credentials, by their keys
	remembered  *Peer              // from before this process; nil where nothing is known
	logLevel    string
	// sparedUntil is until when the server is told of no cancel, since one has ended it.
	sparedUntil time.Time
}

// transport makes the requests to an upstream behind HTTP.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// reach readies what requests to the upstream go through.
func (u *Upstream) reach() {
	if u.cfg.Transport != config.TransportHTTP && u.cfg.Transport != config.TransportSSE {
		return
	}
	base := roundtrip.New()
	u.rt = base
	s := &u.cfg.SignIn
	if s.Type != config.SignInClientCredentials {
		return
	}
	params := make(map[string]string, len(s.Params))
	for name, v := range s.Params {
		params[name] = v.Reveal()
	}
	u.tokens = credentials.New(credentials.ClientCredentials{TokenURL: s.TokenURL.Reveal(), ClientID: s.ClientID, ClientSecret: s.ClientSecret.Reveal(),
		Scopes: s.Scopes, Params: params, Timeout: s.Timeout, Transport: base})
	u.rt = &credentials.Transport{Base: base, Tokens: u.tokens}
	u.mask.with(u.tokens)
}

// New makes an upstream that is not started yet.
func New(cfg *config.Server, opts Options) *Upstream {
	u := &Upstream{
		ID: cfg.ID, cfg: cfg, opts: opts, log: opts.Log.With(zap.String("upstream", cfg.ID)), serve: opts.Serve,
		version: opts.Version, mask: newMasker(secretValues(cfg)), probing: make(chan struct{}, 1), keyed: map[string]*slot{},
		changed: make(chan struct{}), wishes: newWishes(), wishesOf: map[string]*wishes{}, first: make(chan struct{}), bound: boundHeaders(cfg),
	}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	u.reach()
	u.gate.limit, u.gate.queue, u.gate.patience = cfg.MaxConcurrency, cfg.MaxQueue, cfg.CallTimeout
	if cfg.Serialize {
		u.single.limit, u.single.queue, u.single.patience = 1, cfg.MaxQueue, cfg.CallTimeout
	}
	if cfg.Sharing == config.SharingCall {
		u.lone.limit, u.lone.queue, u.lone.patience = max(1, cfg.Instances), cfg.MaxQueue, cfg.CallTimeout
	}
	n := 1
	if cfg.Sharing != config.SharingSession {
		n = max(1, cfg.Instances)
	}
	for i := range n {
		u.shared = append(u.shared, newSlot(u, "", i))
	}
	u.era = u.rememberedEra()
	return u
}

// Config is the configuration of the upstream.
func (u *Upstream) Config() *config.Server { return u.cfg }

// NextID gives an id that no other request to this upstream has had, on whatever connection.
func (u *Upstream) NextID() uint64 { return u.ids.Add(1) }

// Start begins to connect. It returns at once.
func (u *Upstream) Start() {
	if u.cfg.Problem != nil {
		u.mu.Lock()
		u.failure = &Failure{Stage: "configuration", Message: u.cfg.Problem.Error(), At: time.Now()}
		u.mu.Unlock()
		u.firstEnded()
		if u.opts.Observer != nil {
			u.opts.Observer.Changed(u)
		}
		return
	}
	if u.startsIdle() {
		u.firstEnded()
		if u.opts.Observer != nil {
			u.opts.Observer.Changed(u)
		}
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, s := range u.shared {
		// Connections that serve one call at a time are made when they are needed, but for the one that lists.
		if i == 0 || u.cfg.Sharing != config.SharingCall {
			u.startSlot(s)
		}
	}
}

// goodbye is how long what has been said to an upstream, cancels and answers, may take to get there at the end.
const goodbye = time.Second

// Stop ends all connections and waits for them.
func (u *Upstream) Stop() {
	u.off.Finish(goodbye)
	u.cancel()
	u.runs.Stop()
	u.off.Stop()
	if u.tokens != nil {
		u.tokens.Stop()
	}
	if u.rt != nil {
		u.rt.CloseIdleConnections()
	}
}

// First is closed once the first attempt to connect has ended, well or not.
func (u *Upstream) First() <-chan struct{} { return u.first }

func (u *Upstream) firstEnded() {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.first:
	default:
		close(u.first)
	}
}

// Peer is what the handshake of the first shared connection told; before it what is known from an earlier process, or nil.
func (u *Upstream) Peer() *Peer {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.shared {
		if s.peer != nil {
			return s.peer
		}
	}
	return u.remembered
}

// broadcast tells those who wait for a slot that something has changed. u.mu is held.
func (u *Upstream) broadcast() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// env makes what a connection of this upstream needs.
func (u *Upstream) env(s *slot) *env {
	mask := s.mask()
	return &env{id: u.ID, mask: mask, creds: s.creds, callers: u.cfg.ForwardsAuth(), stayLost: !u.cfg.ReinitOnExpiredSession,
		log: u.log, count: u.opts.Count, declares: clientCapabilities, budget: u.opts.Budget, peer: s,
		home: u.home(mask), noisy: &u.noisy, moved: &u.moved,
		limits: wire.Limits{MaxDepth: u.opts.Limits.MaxDepth}, maxFrame: int(u.opts.Limits.MaxFrameBytes)}
}

// home is what processes of this upstream need beside their configuration.
func (u *Upstream) home(mask *masker) *process.Home {
	return &process.Home{Upstream: u.ID, Log: u.log, Count: u.opts.Count, Mask: mask, Brood: &u.brood, Ledger: u.opts.Ledger, Usage: u.opts.Metrics.children()}
}
