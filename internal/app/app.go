// Package app puts the rooms together: it makes every part, starts them in order, and stops them in the reverse order.
// It knows no protocol details.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

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
	// Offline makes an App without listeners, for looking at what it would offer.
	Offline bool
	// Stdio makes an App without listeners that serves one conversation, with ServeStdio.
	Stdio bool
}

// listens says whether there are listeners.
func (o *Options) listens() bool { return !o.Offline && !o.Stdio }

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
	cfg      *config.Config
	log      *zap.Logger
	began    time.Time
	ups      *upstream.Set
	proxy    *proxy.Proxy
	sessions *session.Manager
	door     *httpd.Door
	registry *prometheus.Registry

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
	a := &App{opt: o, cfg: o.Config, log: o.Log, began: time.Now(), serving: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.cleanups.run(context.Background(), o.Log))
		}
	}()
	return a, a.setup()
}

// setup is one straight line on purpose: the order in which the parts are made can be read off it.
func (a *App) setup() error {
	cfg := a.cfg.Proxy
	store, err := a.openState()
	if err != nil {
		return err
	}
	a.cleanups.add("state", func(context.Context) error { return store.Close() })

	a.registry = obs.NewRegistry(a.opt.Version)
	counters := count.New(a.registry)
	budget := upstream.NewBudget(cfg.Limits.MaxBufferedBytes)
	quota := upstream.NewQuota(cfg.Limits.MaxSlots, cfg.Limits.MaxSlotsPerPrincipal)
	upMetrics := upstream.NewMetrics(a.registry)
	relay := &proxy.Relay{}
	var all []*upstream.Upstream
	for _, s := range a.cfg.Servers {
		if s.Disabled {
			continue
		}
		all = append(all, upstream.New(s, upstream.Options{Log: a.log.Named("upstream"), Count: counters, Metrics: upMetrics, Budget: budget,
			Limits: cfg.Limits, Quota: quota, Observer: relay, Tasks: relay, Memory: store, Serve: a.opt.InProcess[s.ID], Version: a.opt.Version}))
	}
	a.ups = upstream.NewSet(all, upMetrics, a.registry)

	keys := a.sessionKeys(store)
	a.proxy = proxy.New(proxy.Options{Upstreams: a.ups, Naming: cfg.Naming, Profiles: cfg.Profiles, Server: a.serverInfo(),
		Log: a.log.Named("proxy"), Count: counters, Registry: a.registry, ListGrace: a.opt.listGrace(), Keys: keys}, relay)

	a.sessions, err = session.New(session.Options{Proxy: a.proxy, Limits: cfg.Limits, Sessions: cfg.Sessions, StreamAfter: cfg.StreamAfter,
		KeepAlive: cfg.KeepAlive, Log: a.log.Named("session"), Count: counters, Registry: a.registry, Ended: a.ups.EndUnit,
		Keys: keys, Memory: store})
	if err != nil {
		return err
	}

	reloaded := prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcp_proxy_config_last_reload_successful",
		Help: "Whether the configuration was good when it was last read."})
	reloaded.Set(1)
	a.registry.MustRegister(reloaded)
	if !a.opt.listens() {
		return nil
	}
	return a.openDoor(counters)
}

const listGrace = 2 * time.Second

// openState opens the state directory. The default one may belong to another instance; then this one keeps its state in
// memory. One that the configuration names must be free, but for a single conversation: clients start several of those.
func (a *App) openState() (*state.Store, error) {
	dir := a.cfg.Proxy.StateDir
	if a.opt.Offline {
		dir = ""
	}
	store, err := state.Open(dir)
	if err == nil {
		if dir == "" && !a.opt.Offline {
			a.log.Warn("there is no state directory; what is learnt is forgotten at the end (proxy.state_dir)")
		}
		return store, nil
	}
	if a.cfg.Proxy.StateDirGiven && !a.opt.Stdio {
		return nil, fmt.Errorf("proxy.state_dir: %w", err)
	}
	a.log.Warn("the state directory cannot be used; what is learnt is forgotten at the end", zap.Error(err))
	return state.Open("")
}

// sessionKeys gives the keys that session ids are sealed with: those of the configuration, or the one that is kept.
func (a *App) sessionKeys(store *state.Store) (keys [][]byte) {
	for _, k := range a.cfg.Proxy.Sessions.Keys {
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

func (a *App) serverInfo() config.ServerInfo {
	info := a.cfg.Proxy.Server
	if info.Name == "" {
		info.Name = "mcp-proxy"
	}
	if info.Version == "" {
		info.Version = a.opt.Version
	}
	return info
}

// openDoor binds the listeners and makes the handlers.
func (a *App) openDoor(counters *count.Counters) error {
	cfg := a.cfg.Proxy
	main, err := a.listen(cfg.Listen)
	if err != nil {
		return err
	}
	opts := httpd.Options{Proxy: cfg, Log: a.log.Named("http"), Registry: a.registry, Auth: auth.New(cfg.Auth), MCP: mcpDoor{a},
		Status: a.Status, Draining: a.sessions.Draining, Limit: counters.Limit, Version: a.opt.Version, Listen: main.Addr().String()}
	var admin net.Listener
	if cfg.AdminListen != "" {
		if admin, err = a.listen(cfg.AdminListen); err != nil {
			return err
		}
		opts.AdminListen = admin.Addr().String()
	}
	if a.door, err = httpd.New(opts); err != nil {
		return err
	}
	a.baseCtx, a.endBase = context.WithCancel(context.Background())
	a.servers = append(a.servers, httpd.NewServer(a.baseCtx, a.door.Main(), a.log))
	if admin != nil {
		a.servers = append(a.servers, httpd.NewServer(a.baseCtx, a.door.Admin(), a.log))
	}
	return nil
}

func (a *App) listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
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
func (a *App) URL() string { return "http://" + a.listeners[0].Addr().String() + "/mcp" }

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
