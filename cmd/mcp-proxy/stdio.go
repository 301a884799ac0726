package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/clients"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/obs"
)

type stdioFlags struct {
	config, url, token, level, format string
	part                              app.Part
}

func stdio(ctx context.Context, args []string) int {
	var f stdioFlags
	fs := flag.NewFlagSet("stdio", flag.ContinueOnError)
	fs.StringVar(&f.config, "config", "", "the configuration `FILE` of the servers to start")
	fs.StringVar(&f.url, "url", "", "the `URL` of a running proxy to connect with, in place of starting servers")
	fs.StringVar(&f.token, "token-env", "MCP_PROXY_TOKEN", "the environment `VARIABLE` with the token for the running proxy")
	fs.StringVar(&f.part.Profile, "profile", "", "offer only this `PROFILE` of the configuration")
	fs.StringVar(&f.part.Server, "server", "", "offer only this `SERVER` of the configuration, by its own names")
	fs.StringVar(&f.level, "log-level", "", "debug, info, warn or error, in place of proxy.log.level")
	fs.StringVar(&f.format, "log-format", "", "json or console, in place of proxy.log.format")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if !noMore(fs) {
		return exitUsage
	}
	if why := f.contradiction(); why != "" {
		fmt.Fprintln(os.Stderr, "mcp-proxy stdio:", why)
		return exitUsage
	}
	// A client that closes our stdout must not kill us: the servers are to be ended first. Ignoring the signal would be
	// inherited by them; a handler is not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// Whatever prints to stdout by habit must not break the protocol.
	out := os.Stdout
	os.Stdout = os.Stderr
	run := f.serve
	if f.url != "" {
		run = f.bridge
	}
	if err := run(ctx, out); err != nil {
		return fail(err)
	}
	return exitOK
}

// contradiction tells which flags do not go together.
func (f *stdioFlags) contradiction() string {
	switch {
	case f.url != "" && f.config != "":
		return "--url connects with a running proxy and --config starts servers; give one or the other"
	case f.url != "" && f.part != app.Part{}:
		return "with --url the part is chosen by the URL: /profiles/NAME/mcp or /servers/NAME/mcp"
	case f.part.Profile != "" && f.part.Server != "":
		return "give --profile or --server, not both"
	}
	return ""
}

// serve starts the servers of a configuration and serves them to the client at our stdin and stdout.
func (f *stdioFlags) serve(ctx context.Context, out *os.File) error {
	// Nothing listens, so it does not matter who could reach the address of the configuration.
	loaded := config.Load(config.Options{Path: f.config, Listen: "127.0.0.1:0"})
	if err := fatal(loaded); err != nil {
		return err
	}
	cfg := loaded.Config
	log, done, err := f.logger(cfg.Proxy.Log)
	if err != nil {
		return err
	}
	defer done()
	app.Report(log, loaded)
	a, err := app.New(app.Options{Config: cfg, Log: log, Version: versionText(), Stdio: true})
	if err != nil {
		return err
	}
	defer endAtOnce(a.Kill)()
	return a.ServeStdio(ctx, os.Stdin, out, f.part)
}

// bridge connects our stdin and stdout with a running proxy.
func (f *stdioFlags) bridge(ctx context.Context, out *os.File) error {
	log, done, err := f.logger(config.Log{Level: "warn", Format: "console"})
	if err != nil {
		return err
	}
	defer done()
	b := clients.Bridge{URL: f.url, Token: os.Getenv(f.token), TokenVariable: f.token, Log: log}
	return b.Run(ctx, os.Stdin, out)
}

func (f *stdioFlags) logger(c config.Log) (log *zap.Logger, done func(), err error) {
	override(&c.Level, f.level)
	override(&c.Format, f.format)
	log, closer, err := obs.NewLogger(c)
	if err != nil {
		return nil, nil, err
	}
	return log, func() {
		_ = log.Sync()
		_ = closer.Close()
	}, nil
}
