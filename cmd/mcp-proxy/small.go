package main

import (
	"context"
	"flag"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/clients"
)

func health(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("health", flag.ContinueOnError)
	url := fs.String("url", "http://127.0.0.1:8080", "the `URL` of the proxy")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if !noMore(fs) {
		return exitUsage
	}
	if err := clients.Health(ctx, *url); err != nil {
		return fail(err)
	}
	return exitOK
}

func demoServer(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("demo-server", flag.ContinueOnError)
	addr := fs.String("http", "", "serve streamable HTTP at this `ADDRESS` in place of stdin and stdout")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if !noMore(fs) {
		return exitUsage
	}
	if err := app.ServeDemo(ctx, versionText(), *addr); err != nil && ctx.Err() == nil {
		return fail(err)
	}
	return exitOK
}
