package main

import (
	"context"
	"flag"
	"os"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func approve(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("approve", flag.ContinueOnError)
	path := fs.String("config", "", "the configuration `FILE`")
	list := fs.Bool("list", false, "only show what waits")
	connect := fs.Bool("connect", false, "start or reach the server first, and look at what it offers now")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	loaded := config.Load(config.Options{Path: *path})
	if err := fatal(loaded); err != nil {
		return fail(err)
	}
	o := app.Approval{Config: loaded.Config, Version: versionText(), Server: fs.Arg(0), List: *list, Connect: *connect, Started: endAtOnce, Out: os.Stdout}
	if fs.NArg() > 1 {
		o.Tools = fs.Args()[1:]
	}
	if err := o.Run(ctx); err != nil {
		return fail(err)
	}
	return exitOK
}
