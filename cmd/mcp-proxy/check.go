package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/app"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func check(ctx context.Context, args []string) int {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	path := fs.String("config", "", "the configuration `FILE`")
	connect := fs.Bool("connect", false, "start or reach every server and list the final names")
	effective := fs.Bool("print", false, "print the effective configuration and where each value came from")
	strict := fs.Bool("strict", false, "take advice for mistakes")
	if code, ok := parse(fs, args); !ok {
		return code
	}
	if !noMore(fs) {
		return exitUsage
	}
	loaded := config.Load(config.Options{Path: *path})
	for _, p := range loaded.Problems {
		fmt.Println(p)
	}
	for _, n := range loaded.Notes {
		fmt.Println("note:", n)
	}
	bad := len(loaded.Errors()) > 0 || *strict && len(loaded.Warnings()) > 0
	if *effective && len(loaded.Fatal()) == 0 {
		if err := loaded.PrintEffective(os.Stdout); err != nil {
			return fail(err)
		}
	}
	if len(loaded.Fatal()) == 0 {
		ok, waiting, err := names(ctx, loaded.Config, *connect)
		if err != nil {
			return fail(err)
		}
		bad = bad || !ok || *strict && waiting > 0
	}
	if bad {
		return exitError
	}
	fmt.Println("the configuration is good:", loaded.Config.Source)
	return exitOK
}

// names prints the table of final names: real ones where the servers are reached, otherwise how they will look. advice
// is how much of it --strict takes for mistakes: tools that nobody has approved, and what fits nothing of a server.
func names(ctx context.Context, cfg *config.Config, connect bool) (ok bool, advice int, err error) {
	a, err := app.New(app.Options{Config: cfg, Log: zap.NewNop(), Version: versionText(), Offline: true})
	if err != nil {
		return false, 0, err
	}
	if !connect {
		printPlanned(a.Planned())
		return true, 0, a.Stop()
	}
	defer endAtOnce(a.Kill)()
	a.Start()
	a.WaitListed(ctx)
	printNames(a.Names())
	if advice = a.Unapproved(); advice > 0 {
		fmt.Printf("%d tools are withheld until they are approved: mcp-proxy approve --list --connect\n", advice)
	}
	for _, text := range a.Remarks() {
		fmt.Println("warning:", oneLine(text))
		advice++
	}
	failures := a.Failures()
	if failures != nil {
		fmt.Println(failures)
	}
	return failures == nil, advice, a.Stop()
}

func printNames(rows []app.Name) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tLENGTH\tKIND\tEFFECT\tSERVER\tITS NAME THERE\tPROFILE\tWHY")
	for _, n := range rows {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", or(n.Exposed, "-"), len(n.Exposed), n.Kind, or(n.Effect, "-"), n.Upstream,
			or(oneLine(n.Wire), "-"), or(n.Profile, "-"), oneLine(n.Why))
	}
	_ = w.Flush()
}

func printPlanned(rows []app.Planned) {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tNAMES\tTRANSPORT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Upstream, r.Example, r.Transport)
	}
	_ = w.Flush()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// oneLine keeps what a server calls its tools from breaking the table, and from giving the terminal orders.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.Join(strings.Fields(s), " "))
}
