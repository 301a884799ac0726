// Command edge is a client for the conformance suite's mock servers that has the proxy before it: it starts the proxy in
// front of the server that the suite names and does through it what the scenario needs, with the SDK's client. What the
// suite then sees is the proxy as a client.
//
//	edge -proxy BINARY -client legacy|modern URL
//
// The suite gives the name of the scenario and what it is about in MCP_CONFORMANCE_SCENARIO and MCP_CONFORMANCE_CONTEXT.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// readyTimeout is how long the proxy may take until it has tried the server. The suite starts many at once.
const readyTimeout = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "edge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	var proxy, era string
	fs := flag.NewFlagSet("edge", flag.ContinueOnError)
	fs.StringVar(&proxy, "proxy", "", "`binary` of the proxy")
	fs.StringVar(&era, "client", "modern", "`era` of the client: legacy or modern")
	if err := fs.Parse(args); err != nil {
		return err
	}
	revision, ok := revisions[era]
	if !ok || proxy == "" || fs.NArg() != 1 {
		return errors.New("usage: edge -proxy BINARY -client legacy|modern URL")
	}
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	script, ok := scripts[scenario]
	if !ok {
		return fmt.Errorf("nothing is known to do in the scenario %q", scenario)
	}
	given, err := readGiven(os.Getenv("MCP_CONFORMANCE_CONTEXT"))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "edge-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	url, p, err := startProxy(ctx, proxy, work, fs.Arg(0), script.options)
	if err != nil {
		return err
	}
	if err := script.run(ctx, peer{url: url, revision: revision, given: given}); err != nil {
		err = fmt.Errorf("%w\n%s", err, p.Tail())
		return errors.Join(err, p.Stop())
	}
	return p.Stop()
}

// startProxy starts a proxy with that one server behind it and gives its URL once it has tried the server.
func startProxy(ctx context.Context, binary, work, server string, options map[string]any) (string, *harness.Process, error) {
	config, err := writeConfig(work, server, options)
	if err != nil {
		return "", nil, err
	}
	addr, err := harness.FreeAddr()
	if err != nil {
		return "", nil, err
	}
	p, err := harness.Start(harness.Command{
		Name: "proxy", Args: []string{binary, "serve", "--config", config, "--listen", addr}, Dir: work, Logs: work,
	})
	if err != nil {
		return "", nil, err
	}
	err = p.Ready(ctx, readyTimeout, func(ctx context.Context) error {
		return harness.WaitOK(ctx, "http://"+addr+"/readyz")
	})
	if err != nil {
		p.Kill()
		return "", nil, err
	}
	return "http://" + addr + "/mcp", p, nil
}

// writeConfig writes a configuration that changes no name: the scenarios are about names that are fixed.
func writeConfig(work, server string, options map[string]any) (string, error) {
	entry := map[string]any{"type": "http", "url": server}
	for k, v := range options {
		entry[k] = v
	}
	text, err := json.MarshalIndent(map[string]any{
		"mcpServers": map[string]any{"mock": entry},
		"proxy": map[string]any{
			"naming":    map[string]any{"mode": "none"},
			"state_dir": filepath.Join(work, "state"),
		},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "mcp-proxy.json")
	return path, os.WriteFile(path, text, 0o600)
}
