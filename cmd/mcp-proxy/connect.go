package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/clients"
)

func connect(_ context.Context, args []string) int {
	c := clients.Connection{Program: program()}
	fs := flag.NewFlagSet("connect", flag.ContinueOnError)
	fs.StringVar(&c.URL, "url", "http://127.0.0.1:8080/mcp", "the `URL` of the proxy, as the client reaches it")
	fs.StringVar(&c.Name, "name", clients.DefaultName, "what the client calls the proxy, its `NAME`")
	fs.StringVar(&c.TokenEnv, "token-env", "", "the environment `VARIABLE` in which the client finds the token for the proxy")
	write := fs.Bool("write", false, "write it into the client's file; a copy of what was there is kept beside it")
	client, code, ok := clientAnd(fs, args)
	if !ok {
		return code
	}
	h, err := home()
	if err != nil {
		return fail(err)
	}
	plan, err := clients.Connect(client, c, h)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcp-proxy connect:", err)
		return exitUsage
	}
	if !*write {
		showPlan(plan)
		return exitOK
	}
	backup, changed, err := plan.Write()
	switch {
	case err != nil:
		return fail(err)
	case !changed:
		fmt.Printf("%s is connected already: %s\n", plan.Title, plan.File)
	case backup == "":
		fmt.Printf("%s is connected to %s: %s\n%s\n", plan.Title, c.URL, plan.File, plan.After)
	default:
		fmt.Printf("%s is connected to %s: %s\nWhat was there before: %s\n%s\n", plan.Title, c.URL, plan.File, backup, plan.After)
	}
	return exitOK
}

// clientAnd reads a client's name with flags before and behind it. ok is false where the process is to end with the code.
func clientAnd(fs *flag.FlagSet, args []string) (client string, code int, ok bool) {
	for {
		if code, ok := parse(fs, args); !ok {
			return "", code, false
		}
		switch {
		case fs.NArg() == 0 && client != "":
			return client, exitOK, true
		case fs.NArg() == 0:
			fs.Usage()
			return "", exitUsage, false
		case client != "":
			noMore(fs)
			return "", exitUsage, false
		}
		client, args = fs.Arg(0), fs.Args()[1:]
	}
}

func showPlan(p *clients.Plan) {
	if p.Command != "" {
		fmt.Printf("%s takes the proxy with\n\n  %s\n\nor with this in %s (--write writes it):\n\n", p.Title, p.Command, p.File)
	} else {
		fmt.Printf("%s takes the proxy with this in %s (--write writes it):\n\n", p.Title, p.File)
	}
	for line := range strings.SplitSeq(p.Text, "\n") {
		fmt.Println("  " + line)
	}
	fmt.Printf("\n%s\n", p.After)
}

func importServers(_ context.Context, args []string) int {
	fs := flag.NewFlagSet("import", flag.ContinueOnError)
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if fs.NArg() == 0 {
		fs.Usage()
		return exitUsage
	}
	h, err := home()
	if err != nil {
		return fail(err)
	}
	out, err := clients.Import(fs.Args(), h)
	if err != nil {
		return fail(err)
	}
	for _, n := range out.Notes {
		fmt.Fprintln(os.Stderr, "mcp-proxy import:", n)
	}
	_, _ = os.Stdout.Write(out.Text)
	return exitOK
}

func home() (clients.Home, error) {
	dir, err := os.UserHomeDir()
	if err != nil {
		return clients.Home{}, err
	}
	conf, err := os.UserConfigDir()
	if err != nil {
		return clients.Home{}, err
	}
	return clients.HomeOf(dir, conf), nil
}

// program is the path of this program, as others can start it.
func program() string {
	if p, err := os.Executable(); err == nil {
		return p
	}
	return "mcp-proxy"
}
