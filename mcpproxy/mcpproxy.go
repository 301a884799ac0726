// Package mcpproxy puts a whole mcp-proxy into another program: one MCP server in front of many, served by whatever the
// program serves with.
//
//	s, err := mcpproxy.New(ctx, mcpproxy.File("mcp.json"))
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	http.Handle("/", s.Handler())
//
// The configuration is the one of the command mcp-proxy (docs/configuration.md), but for what concerns its own listeners:
// proxy.listen and proxy.admin_listen mean nothing here, and state is kept in memory unless proxy.state_dir is given. Who
// may connect is up to the server that the handler is mounted in and to proxy.auth.
//
// Nothing of a Server is global: a program may have many, and one that has been closed leaves nothing behind.
package mcpproxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
)

// Server is one proxy. Its methods may be called by many goroutines at a time.
type Server struct {
	app     *app.App
	serves  sync.WaitGroup // of ServeTransport
	closing sync.Once
	err     error // of the closing

	mu     sync.Mutex
	closed bool
}

// ErrClosed is returned by what is begun on a Server that has been closed.
var ErrClosed = errors.New("the proxy has been closed")

// Option changes how a Server is made.
type Option func(*settings)

type settings struct {
	log       *slog.Logger
	getenv    func(string) (string, bool)
	functions map[string]app.Function
}

// WithLogger logs to l. Without it nothing is logged. Secrets are in no record.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithVariables gives the values of variables that the configuration refers to, in place of those of the process.
func WithVariables(lookup func(name string) (value string, ok bool)) Option {
	return func(s *settings) { s.getenv = lookup }
}

// Func is an agent: it gets the text that a client gives its tool, and answers with one. An error is the client's as a
// result with isError. ctx ends when the client cancels the call or has gone, when its time is over, and with the Server;
// the function must then return soon, since Close waits for it.
type Func func(ctx context.Context, input string) (string, error)

// Function is an agent that is a function of the program. It is offered as one tool, which takes {"input": string}.
type Function struct {
	// Title is the name for people, Description what models are told.
	Title, Description string
	// Timeout bounds one run; zero is ten minutes.
	Timeout time.Duration
	Run     Func
}

// WithFunction offers a function as a tool. Its tool has the name with everything but letters, digits, - and _ as _. In
// profiles it is named like a server; it comes before a server or agent of that name in the configuration.
func WithFunction(name string, f Function) Option {
	return func(s *settings) {
		s.functions[name] = app.Function{Title: f.Title, Description: f.Description, Timeout: f.Timeout, Run: f.Run.run}
	}
}

func (f Func) run(ctx context.Context, input string) (string, error) { return f(ctx, input) }

// New makes a proxy and begins to connect with its servers. It does not wait for them, unless proxy.startup is strict: then
// New fails where one cannot be reached, or ctx ends before that is known. Its error tells every mistake in the configuration. ctx is for New alone.
func New(ctx context.Context, from Source, options ...Option) (*Server, error) {
	set := settings{functions: map[string]app.Function{}}
	for _, o := range options {
		o(&set)
	}
	load, err := from.loader(&set)
	if err != nil {
		return nil, err
	}
	loaded := load()
	if err := fatal(loaded); err != nil {
		return nil, err
	}
	log := newLogger(set.log, loaded.Config.Proxy.Log.Level)
	app.Report(log, loaded)
	opts := app.Options{Config: loaded.Config, Log: log, Version: version(), Functions: set.functions, Mounted: true,
		Forget: !loaded.Config.Proxy.StateDirGiven, Source: &app.Source{Load: load, Path: loaded.Path, Sum: loaded.Sum}}
	a, err := app.New(opts)
	if err != nil {
		return nil, err
	}
	a.Start()
	s := &Server{app: a}
	if a.Strict() {
		err := a.Check(ctx)
		if err == nil {
			err = context.Cause(ctx) // then not everything has been found out
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Handler serves clients over HTTP at /mcp, /servers/NAME/mcp and /profiles/NAME/mcp, and the pages of operators: /healthz,
// /readyz, /metrics, /api/v1/status and /. Mount it at the root of a server, or below a path with [http.StripPrefix]. The
// server must not buffer responses, nor end them by a timeout for writing.
func (s *Server) Handler() http.Handler { return s.app.Handler() }

// Part is what is offered over a transport: all, where it is zero; one profile; or one server by its own names.
type Part struct{ Profile, Server string }

// ServeTransport serves one client over any transport of the Go SDK: in memory, over a socket, over pipes. It returns when
// the client ends the conversation, which is no error, when ctx ends, or when the Server is closed. It may be called many
// times, and at a time.
func (s *Server) ServeTransport(ctx context.Context, t mcp.Transport, part Part) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	s.serves.Add(1)
	s.mu.Unlock()
	defer s.serves.Done()
	return s.app.ServeTransport(ctx, t, app.Part(part))
}

// WaitReady waits until every server has been reached and listed, or has failed, for proxy.startup_grace at most.
func (s *Server) WaitReady(ctx context.Context) error { return s.app.WaitReady(ctx) }

// Reload loads the configuration anew: the file that it came from, or the same text with the variables of now. What it does
// not change goes on. Where it is refused, everything stays as it was. A file is also watched, and loaded when it changes.
func (s *Server) Reload(ctx context.Context) error { return s.app.Reload(ctx) }

// Close ends everything and waits for it: calls under way may end within proxy.shutdown_grace, then they are cancelled;
// programs are stopped and connections closed. The handler answers 503 from then on. Further calls wait for the first one
// and give the same error.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closing.Do(func() {
		s.err = s.app.Stop()
		s.serves.Wait()
	})
	return s.err
}
