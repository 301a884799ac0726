// Package app puts the rooms together: it makes every part, starts them in order, and stops them in the reverse order.
// It knows no protocol details.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/agents"
	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/httpd"
	"github.com/mcp-proxy/mcp-proxy/internal/obs"
	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/session"
	"github.com/mcp-proxy/mcp-proxy/internal/state"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// Options are what an App is made of.
type Options struct {
	Config  *config.Config
	Log     *zap.Logger
	Version string
	// InProcess are the servers that live in this process, by the id of their configuration.
	InProcess map[string]upstream.InProcess
	// Functions are agents that are functions of this program, by the names of their entries.
	Functions map[string]Function
	// Offline makes an App without listeners, for looking at what it would offer.
	Offline bool
	// Stdio makes an App without listeners that serves one conversation, with ServeStdio.
	Stdio bool
	// Mounted makes an App without listeners, whose Handler is served by others.
	Mounted bool
	// Forget makes an App that keeps nothing: it reads which tools are approved, and leaves the state directory alone.
	Forget bool
	// Review makes an App that is offline and still keeps what it has seen of pinned servers, for somebody who approves.
	Review bool
	// Source is where the configuration can be loaded from anew; nil where it stays as it is.
	Source *Source
	// SetLevel changes what is logged; nil where that stays as it is.
	SetLevel func(level string) error
}

// listens says whether there are listeners.
func (o *Options) listens() bool { return !o.Offline && !o.Stdio && !o.Mounted }

// forgets says whether nothing is kept.
func (o *Options) forgets() bool { return o.Offline || o.Forget }

// listGrace is how long lists wait for upstreams that have just been started. What comes later is announced.
func (o *Options) listGrace() time.Duration {
	if o.Stdio { // the upstreams start with the client, whose first list is often the only one
		return o.Config.Proxy.StartupGrace
	}
	return min(listGrace, o.Config.Proxy.StartupGrace)
}

// App is one whole proxy.
type App struct {
	opt      Options
	cfg      atomic.Pointer[config.Config]
	log      *zap.Logger
	began    time.Time
	ups      *upstream.Set
	proxy    *proxy.Proxy
	sessions *session.Manager
	reload   *reloader
	registry *prometheus.Registry
	web      *http.Client // for agents
	makeUp   func(*config.Config, *config.Server) *upstream.Upstream
	makeDoor func(*config.Config) (*httpd.Door, error)

	main, admin swapped // the handlers of the listeners
	pinned      approvalsWatch
	leaving     atomic.Bool // set when the end has begun
	wasReady    atomic.Bool

	guests *guests // requests that come through the servers of others

	listeners []net.Listener
	servers   []*http.Server
	baseCtx   context.Context
	endBase   context.CancelFunc
	serving   chan error
	serves    sync.WaitGroup
	cleanups  cleanups
}

// New makes every part and binds the listeners. Nothing runs yet; what was made is given back where New fails.
func New(o Options) (_ *App, err error) {
	o.Config = o.withFunctions(o.Config)
	a := &App{opt: o, log: o.Log, began: time.Now(), serving: make(chan error, 2)}
	a.cfg.Store(o.Config)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.cleanups.run(context.Background(), o.Log))
		}
	}()
	return a, a.setup()
}

// config is the configuration in force.
func (a *App) config() *config.Config { return a.cfg.Load() }

// setup is one straight line on purpose: the order in which the parts are made can be read off it.
func (a *App) setup() error {
	cfg := a.config().Proxy
	store, err := a.openState()
	if err != nil {
		return err
	}
	a.cleanups.add("state", func(context.Context) error { return store.Close() })

	upstream.EndLeftovers(store, a.log.Named("upstream"))
	a.web = agents.NewClient()
	a.cleanups.add("agents", func(context.Context) error { a.web.CloseIdleConnections(); return nil })

	a.registry = obs.NewRegistry(a.opt.Version)
	counters := count.New(a.registry)
	budget := upstream.NewBudget(cfg.Limits.MaxBufferedBytes)
	quota := upstream.NewQuota(cfg.Limits.MaxSlots, cfg.Limits.MaxSlotsPerPrincipal)
	upMetrics := upstream.NewMetrics(a.registry)
	relay := &proxy.Relay{}
	a.makeUp = func(c *config.Config, s *config.Server) *upstream.Upstream {
		opts := upstream.Options{Log: a.log.Named("upstream"), Count: counters, Metrics: upMetrics, Budget: budget,
			Limits: c.Proxy.Limits, Quota: quota, Observer: relay, Tasks: relay, Own: relay, Memory: store, Ledger: store, Serve: a.opt.InProcess[s.ID], Version: a.opt.Version}
		if s.Agent != nil && s.Transport == config.TransportInProcess {
			return a.makeAgent(s, opts)
		}
		return upstream.New(s, opts)
	}
	a.ups = upstream.NewSet(a.upstreams(a.config()), upMetrics, a.registry)

	keys := a.sessionKeys(store)
	a.proxy = proxy.New(proxy.Options{Upstreams: a.ups, Shape: a.shape(cfg), Log: a.log.Named("proxy"), Count: counters, Registry: a.registry,
		ListGrace: a.opt.listGrace(), Keys: keys, Memory: store, Approvals: a.approvals(), KeptResults: cfg.KeptResults}, relay)
	a.ups.OnGone(a.proxy.Forget)

	a.sessions, err = session.New(session.Options{Proxy: a.proxy, Limits: cfg.Limits, Sessions: cfg.Sessions, StreamAfter: cfg.StreamAfter,
		KeepAlive: cfg.KeepAlive, Log: a.log.Named("session"), Count: counters, Registry: a.registry, Ended: a.ups.EndUnit,
		Keys: keys, Memory: store})
	if err != nil {
		return err
	}

	a.reload = newReloader(a, newMetrics(a.registry))
	switch {
	case a.opt.Mounted:
		return a.mount(a.doorOptions(counters))
	case !a.opt.listens():
		return nil
	}
	return a.openDoor(a.doorOptions(counters))
}

const listGrace = 2 * time.Second

// openState opens the state directory. The default one may belong to another instance; then this one keeps its state in
// memory. One that the configuration names must be free, but for a single conversation: clients start several of those.
func (a *App) openState() (*state.Store, error) {
	dir := a.config().Proxy.StateDir
	if a.opt.forgets() {
		dir = ""
	}
	store, err := state.Open(dir)
	if err == nil {
		if dir == "" && !a.opt.forgets() {
			a.log.Warn("there is no state directory; what is learnt is forgotten at the end (proxy.state_dir)")
		}
		return store, nil
	}
	if a.config().Proxy.StateDirGiven && !a.opt.Stdio {
		return nil, fmt.Errorf("proxy.state_dir: %w", err)
	}
	a.log.Warn("the state directory cannot be used; what is learnt is forgotten at the end", zap.Error(err))
	return state.Open("")
}

// sessionKeys gives the keys that session ids are sealed with: those of the configuration, or the one that is kept.
func (a *App) sessionKeys(store *state.Store) (keys [][]byte) {
	for _, k := range a.config().Proxy.Sessions.Keys {
		keys = append(keys, []byte(k.Reveal()))
	}
	if len(keys) > 0 {
		return keys
	}
	key, err := store.SessionKey()
	if err != nil {
		a.log.Warn("sessions will be lost at the end", zap.Error(err))
	}
	return [][]byte{key}
}

// shape is what the configuration says of the whole catalog.
func (a *App) shape(p config.Proxy) proxy.Shape {
	return proxy.Shape{Naming: p.Naming, Lazy: p.Lazy, Profiles: p.Profiles, Server: a.serverInfo(p)}
}

func (a *App) serverInfo(p config.Proxy) config.ServerInfo {
	info := p.Server
	if info.Name == "" {
		info.Name = "mcp-proxy"
	}
	if info.Version == "" {
		info.Version = a.opt.Version
	}
	return info
}

// upstreams gives those that the configuration wants. One whose definition has not changed is the one that runs.
func (a *App) upstreams(c *config.Config) (all []*upstream.Upstream) {
	for _, s := range c.Servers {
		if s.Disabled {
			continue
		}
		u := a.running(s)
		if u == nil {
			u = a.makeUp(c, s)
		}
		all = append(all, u)
	}
	return all
}

// running gives the upstream that runs with exactly this definition; nil where there is none.
func (a *App) running(s *config.Server) *upstream.Upstream {
	if a.ups == nil {
		return nil
	}
	if u := a.ups.Get(s.ID); u != nil && reflect.DeepEqual(u.Config(), s) {
		return u
	}
	return nil
}

// doorOptions are those that every door has.
func (a *App) doorOptions(counters *count.Counters) httpd.Options {
	opts := httpd.Options{Log: a.log.Named("http"), Registry: a.registry, MCP: mcpDoor{a}, Tool: a.callTool, Status: a.Status, Draining: a.draining,
		Limit: counters.Limit, Version: a.opt.Version}
	if a.opt.Source != nil {
		opts.Reload = a.Reload
	}
	return opts
}

// hang makes the door, and keeps how it is made anew.
func (a *App) hang(opts httpd.Options) error {
	a.makeDoor = func(c *config.Config) (*httpd.Door, error) {
		o := opts
		o.Proxy, o.Auth = c.Proxy, auth.New(c.Proxy.Auth)
		if c.Proxy.AdminAuth.Mode != "" {
			o.AdminAuth = auth.New(c.Proxy.AdminAuth)
		}
		return httpd.New(o)
	}
	door, err := a.makeDoor(a.config())
	if err != nil {
		return err
	}
	a.swapDoor(door)
	a.baseCtx, a.endBase = context.WithCancel(context.Background())
	return nil
}

// openDoor binds the listeners and makes the handlers.
func (a *App) openDoor(opts httpd.Options) error {
	cfg := a.config().Proxy
	main, err := a.listen(cfg.Listen)
	if err != nil {
		return err
	}
	opts.Listen = addressOf(main)
	var admin net.Listener
	if cfg.AdminListen != "" {
		if admin, err = a.listen(cfg.AdminListen); err != nil {
			return err
		}
		opts.AdminListen = addressOf(admin)
	}
	if err := a.hang(opts); err != nil {
		return err
	}
	a.servers = append(a.servers, httpd.NewServer(a.baseCtx, &a.main, a.log))
	if admin != nil {
		a.servers = append(a.servers, httpd.NewServer(a.baseCtx, &a.admin, a.log))
	}
	return nil
}

// swapDoor lets requests in through this door from now on; those that are in stay.
func (a *App) swapDoor(d *httpd.Door) {
	a.main.swap(d.Main())
	if d.Admin() != nil {
		a.admin.swap(d.Admin())
	}
}

// draining says whether we are going away.
func (a *App) draining() bool { return a.leaving.Load() || a.sessions.Draining() }

// swapped is a handler that can be put in the place of another while requests come.
type swapped struct{ now atomic.Pointer[http.Handler] }

func (s *swapped) swap(h http.Handler) { s.now.Store(&h) }

// ServeHTTP implements http.Handler.
func (s *swapped) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }

func (a *App) listen(addr string) (net.Listener, error) {
	var l net.Listener
	var err error
	if path, ok := config.SocketPath(addr); ok {
		l, err = listenUnix(path, a.config().Proxy.SocketMode)
	} else {
		l, err = net.Listen("tcp", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", addr, err)
	}
	a.listeners = append(a.listeners, l)
	a.cleanups.add("listener "+addr, func(context.Context) error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return l, nil
}

// URL is where clients connect.
func (a *App) URL() string {
	addr := addressOf(a.listeners[0])
	if _, ok := config.SocketPath(addr); ok {
		return addr
	}
	return "http://" + addr + "/mcp"
}

// addressOf is the address of a listener as a configuration says it.
func addressOf(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// mcpDoor is the protocol behind the door.
type mcpDoor struct{ a *App }

func viewOf(ep httpd.Endpoint) string {
	switch ep.Kind {
	case httpd.KindServer:
		return proxy.ServerView(ep.Name)
	case httpd.KindProfile:
		return proxy.ProfileView(ep.Name)
	}
	return proxy.ViewAll
}

// Has implements httpd.MCP.
func (d mcpDoor) Has(ep httpd.Endpoint) bool { return d.a.proxy.HasView(viewOf(ep)) }

// Serve implements httpd.MCP.
func (d mcpDoor) Serve(w http.ResponseWriter, r *http.Request, ep httpd.Endpoint, who auth.Principal) {
	d.a.sessions.ServeHTTP(w, r, viewOf(ep), who.Name)
}

// callTool serves a call of one tool without the protocol.
func (a *App) callTool(w http.ResponseWriter, r *http.Request, ep httpd.Endpoint, who auth.Principal, tool string) {
	a.sessions.ServeTool(w, r, viewOf(ep), who.Name, tool)
}
