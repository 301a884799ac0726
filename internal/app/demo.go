package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/demo"
	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// Demo is the built-in configuration: a child that is this same binary, an HTTP server and a server in this process.
type Demo struct {
	http   *http.Server
	serves sync.WaitGroup
	// Text is the configuration that a file would hold.
	Text      []byte
	InProcess map[string]upstream.InProcess
}

// StartDemo begins to serve the HTTP server of the demo and makes the configuration.
func StartDemo(version string) (*Demo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this binary: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the demo server: %w", err)
	}
	d := &Demo{http: &http.Server{Handler: demo.Handler(demo.Notes(version)), ReadHeaderTimeout: closeGrace}}
	d.serves.Go(func() { _ = d.http.Serve(l) })
	d.Text = fmt.Appendf(nil, `{"mcpServers": {"clock": {"command": %q, "args": ["demo-server"]}, "notes": {"type": "http", "url": "http://%s/mcp"}}}`, self, l.Addr())
	d.InProcess = map[string]upstream.InProcess{"guide": func(ctx context.Context, rw io.ReadWriteCloser) error {
		return demo.Serve(ctx, demo.Guide(version), rw)
	}}
	return d, nil
}

// Complete adds the server that no file can name.
func (d *Demo) Complete(cfg *config.Config) {
	guide := *cfg.Servers[0]
	guide.ID, guide.Transport, guide.Command, guide.Args = "guide", config.TransportInProcess, "", nil
	cfg.Servers = append(cfg.Servers, &guide)
}

// Stop ends the HTTP server of the demo and waits for its end.
func (d *Demo) Stop() {
	_ = d.http.Close()
	d.serves.Wait()
}

// ServeDemo runs one of the demo servers by itself: over stdin and stdout, or over HTTP at an address.
func ServeDemo(ctx context.Context, version, addr string) error {
	if addr == "" {
		return demo.ServeStdio(ctx, demo.Clock(version))
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listening on %q: %w", addr, err)
	}
	s := &http.Server{Handler: demo.Handler(demo.Notes(version)), ReadHeaderTimeout: closeGrace}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
