package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/clients"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func call(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("call", flag.ContinueOnError)
	path := fs.String("config", "", "the configuration `FILE` of a proxy to start for this call")
	url := fs.String("url", "", "the `URL` of a running proxy")
	token := fs.String("token-env", "MCP_PROXY_TOKEN", "the environment `VARIABLE` with the token for the proxy")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if fs.NArg() < 1 || fs.NArg() > 2 || *url != "" && *path != "" {
		fs.Usage()
		return exitUsage
	}
	input := "{}"
	if fs.NArg() == 2 {
		input = fs.Arg(1)
	}
	c := clients.Caller{URL: *url, Token: os.Getenv(*token), Version: versionText()}
	if *url == "" {
		stop, err := startFor(ctx, *path, &c)
		if err != nil {
			return fail(err)
		}
		defer stop()
	}
	out, err := c.Call(ctx, fs.Arg(0), []byte(input))
	if err != nil {
		return fail(err)
	}
	fmt.Println(string(out))
	return exitOK
}

// startFor starts a proxy on a free port of this machine, for one call.
func startFor(ctx context.Context, path string, c *clients.Caller) (stop func(), err error) {
	loaded := config.Load(config.Options{Path: path, Listen: "127.0.0.1:0"})
	if err := fatal(loaded); err != nil {
		return nil, err
	}
	cfg := loaded.Config
	cfg.Proxy.Listen, cfg.Proxy.AdminListen, cfg.Proxy.Auth = "127.0.0.1:0", "", config.Auth{Mode: config.AuthNone}
	a, err := app.New(app.Options{Config: cfg, Log: zap.NewNop(), Version: versionText(), Forget: true})
	if err != nil {
		return nil, err
	}
	calm := endAtOnce(a.Kill)
	a.Start()
	a.WaitListed(ctx)
	if ctx.Err() != nil {
		defer calm()
		return nil, errors.Join(ctx.Err(), a.Stop())
	}
	c.URL = a.URL()
	return func() {
		_ = a.Stop()
		calm()
	}, nil
}
