// Package httpd is the door: everything between the network and the protocol. It decides who may come in, from where
// and how much at a time, and it serves the pages for operators. What a message says is none of its business.
package httpd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/auth"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// Kind is what an endpoint gives access to.
type Kind string

// The kinds of endpoints.
const (
	KindAggregate Kind = "aggregate" // everything; its name is empty
	KindServer    Kind = "server"    // one upstream under its own names
	KindProfile   Kind = "profile"   // a named subset
)

// Endpoint is the place that a request is for.
type Endpoint struct {
	Kind Kind
	Name string
}

// MCP serves the protocol itself. Its methods are called from many goroutines at once.
type MCP interface {
	// Has tells whether there is such an endpoint; where there is none the door answers 404.
	Has(Endpoint) bool
	// Serve answers one request and returns when the response is complete. Every method gets here, and the path has
	// been dealt with. Reading the body fails with *http.MaxBytesError where it is over the limit; the answer to that
	// is Serve's. The writer can be flushed, and http.ResponseController reaches the connection through it.
	Serve(w http.ResponseWriter, r *http.Request, ep Endpoint, who auth.Principal)
}

// Options are what a door is made of. All but Log, AdminAuth, Tool, Reload, Draining, Limit and Version are required.
type Options struct {
	Proxy    config.Proxy
	Log      *zap.Logger
	Registry *prometheus.Registry // what /metrics shows, and where our own metrics go
	Auth     *auth.Authenticator
	// AdminAuth is who may use the admin listener; nil for everybody who reaches it over loopback, and Auth otherwise.
	AdminAuth *auth.Authenticator
	MCP       MCP
	// Status is asked at every look at /readyz, / and /api/v1/status.
	Status func() Status
	// Tool serves a call of one tool without the protocol, at the endpoint of a view; nil means that there is no such
	// endpoint. What is said of MCP.Serve holds for it.
	Tool func(w http.ResponseWriter, r *http.Request, ep Endpoint, who auth.Principal, tool string)
	// Reload loads the configuration anew; nil means that there is no such endpoint. Its context does not end when the
	// caller goes away.
	Reload func(context.Context) error
	// Draining tells whether we are shutting down, for readiness. Which messages are still taken is up to MCP.
	Draining func() bool
	// Limit is told the name of every bound that a request ran into: "in_flight", "body" or "body_time".
	Limit   func(name string)
	Version string
	// Mounted makes a door for a server that is not ours. There is no listener of which the names are known, so those of
	// loopback hold for a connection over loopback, and those of an open listener for the others.
	Mounted bool
	// Listen and AdminListen are the addresses that are really listened on; where they are empty, those in Proxy hold.
	// Which names we may be called by depends on them.
	Listen, AdminListen string
}

// Door serves both listeners. It starts no goroutines and does not change once made, so a reload makes a new one (on
// the same registry) and swaps the handlers.
type Door struct {
	opt     Options
	log     *zap.Logger
	metrics *metrics
	page    *page
	cors    corsHeaders

	main, admin http.Handler // admin is nil without an admin listener
	inFlight    atomic.Int64
}

// New makes a door, or says which option is missing or which address cannot be understood.
func New(o Options) (*Door, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	d := &Door{opt: o, log: o.Log.Named("http"), page: newPage(), cors: newCORSHeaders(o.Auth.Header())}
	var err error
	if d.metrics, err = newMetrics(o.Registry); err != nil {
		return nil, fmt.Errorf("registering the metrics of the door: %w", err)
	}
	if o.Mounted {
		d.main, err = d.mounted()
		return d, err
	}
	if d.main, err = d.mainAt(o.Listen); err != nil {
		return nil, err
	}
	if o.AdminListen == "" {
		return d, nil
	}
	admin, err := newListener(o.AdminListen, o.Proxy, d.admins().auth.Required())
	if err != nil {
		return nil, fmt.Errorf("the admin listening address: %w", err)
	}
	d.admin = d.enter(admin, d.adminRoutes(admin))
	return d, nil
}

// mainAt is the handler of the main listener at this address.
func (d *Door) mainAt(addr string) (http.Handler, error) {
	l, err := newListener(addr, d.opt.Proxy, d.opt.Auth.Required())
	if err != nil {
		return nil, fmt.Errorf("the listening address: %w", err)
	}
	return d.enter(l, d.mainRoutes(l)), nil
}

// complete fills in what may be left out.
func (o *Options) complete() error {
	if o.Registry == nil || o.Auth == nil || o.MCP == nil || o.Status == nil {
		return errors.New("a door needs a registry, an authenticator, an MCP handler and a status")
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Draining == nil {
		o.Draining = func() bool { return false }
	}
	if o.Limit == nil {
		o.Limit = func(string) {}
	}
	if o.Listen == "" {
		o.Listen = o.Proxy.Listen
	}
	if o.AdminListen == "" {
		o.AdminListen = o.Proxy.AdminListen
	}
	return nil
}

// Main is the handler of the listener that MCP clients use.
func (d *Door) Main() http.Handler { return d.main }

// Admin is the handler of the listener for operators, nil when there is none.
func (d *Door) Admin() http.Handler { return d.admin }

// hasAdmin tells whether the pages for operators have a listener of their own.
func (d *Door) hasAdmin() bool { return d.opt.AdminListen != "" }
