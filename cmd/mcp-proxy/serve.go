package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/obs"
)

type serveFlags struct {
	config, listen, admin, level, format string
	demo                                 bool
}

func serve(ctx context.Context, args []string) int {
	var f serveFlags
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.StringVar(&f.config, "config", "", "the configuration `FILE`")
	fs.StringVar(&f.listen, "listen", "", "the `ADDRESS` to listen on, in place of proxy.listen")
	fs.StringVar(&f.admin, "admin-listen", "", "a second `ADDRESS` for metrics and status, in place of proxy.admin_listen")
	fs.StringVar(&f.level, "log-level", "", "debug, info, warn or error, in place of proxy.log.level")
	fs.StringVar(&f.format, "log-format", "", "json or console, in place of proxy.log.format")
	fs.BoolVar(&f.demo, "demo", false, "serve the built-in demo servers; needs no file")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if !noMore(fs) {
		return exitUsage
	}
	if f.demo && f.config != "" {
		fmt.Fprintln(os.Stderr, "mcp-proxy serve: --demo serves without a configuration; give one or the other")
		return exitUsage
	}
	if err := f.run(ctx); err != nil {
		return fail(err)
	}
	return exitOK
}

func (f *serveFlags) run(ctx context.Context) error {
	opts := config.Options{Path: f.config, Listen: f.listen, AdminListen: f.admin}
	o := app.Options{Version: versionText()}
	var demo *app.Demo
	if f.demo {
		var err error
		if demo, err = app.StartDemo(o.Version); err != nil {
			return err
		}
		defer demo.Stop()
		opts.Text, opts.Source = demo.Text, "demo"
		o.InProcess = demo.InProcess
	}
	load := func() *config.Loaded { return f.load(opts, demo) }
	loaded := load()
	if err := fatal(loaded); err != nil {
		return err
	}
	cfg := loaded.Config
	log, control, err := obs.NewLogger(cfg.Proxy.Log)
	if err != nil {
		return err
	}
	defer control.Close()
	defer func() { _ = log.Sync() }()
	app.Report(log, loaded)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	o.Source, o.SetLevel = &app.Source{Load: load, Path: loaded.Path, Sum: loaded.Sum, Hangup: hangup}, control.SetLevel
	o.Config, o.Log = cfg, log
	a, err := app.New(o)
	if err != nil {
		return err
	}
	defer endAtOnce(a.Kill)()
	if demo != nil {
		fmt.Fprintf(os.Stdout, demoText, a.URL())
	}
	if err := a.Run(ctx); err != nil {
		log.Error("the proxy ended", zap.Error(err))
		return err
	}
	return nil
}

// load reads the configuration; flags come before what it says.
func (f *serveFlags) load(opts config.Options, demo *app.Demo) *config.Loaded {
	loaded := config.Load(opts)
	if demo != nil && len(loaded.Config.Servers) > 0 {
		demo.Complete(loaded.Config)
	}
	override(&loaded.Config.Proxy.Log.Level, f.level)
	override(&loaded.Config.Proxy.Log.Format, f.format)
	return loaded
}

const demoText = `The demo serves at %[1]s

Connect a client, for example:
  claude mcp add --transport http mcp-proxy %[1]s
  Cursor, in ~/.cursor/mcp.json:   {"mcpServers": {"mcp-proxy": {"url": "%[1]s"}}}
  VS Code, in .vscode/mcp.json:    {"servers": {"mcp-proxy": {"type": "http", "url": "%[1]s"}}}

or call a tool from here:
  mcp-proxy call --url %[1]s clock__now
`

func override(to *string, value string) {
	if value != "" {
		*to = value
	}
}

// fatal gives the mistakes that prevent a start, a line each.
func fatal(l *config.Loaded) error {
	problems := l.Fatal()
	if len(problems) == 0 {
		return nil
	}
	lines := []string{"the configuration cannot be used:"}
	for _, p := range problems {
		lines = append(lines, "  "+p.String())
	}
	return errors.New(strings.Join(lines, "\n"))
}
