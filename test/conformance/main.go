// Command conformance runs the official conformance suite, from both sides.
//
// As a client the suite tests a reference server, once directly and then through the proxy: for every revision of the
// protocol, over HTTP and over stdio, with the reference server in the era of the revision and in the other one. What the
// server passes directly it must pass through the proxy too.
//
// As a server the suite tests the proxy as its client: the command edge beside this file starts a proxy before a mock
// server of the suite and drives a client of each era through it. Everything must pass.
//
// The exceptions stand, with their reasons, in three lists beside this file, and one that is no longer needed fails the
// run as well.
package main

import (
	"context"
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

// errDiffers is the end of a run in which the proxy changed a result.
var errDiffers = errors.New("the proxy changes results")

// expectedFiles are the lists of what may fail, by kind of run.
var expectedFiles = map[kind]string{
	straight: "expected-failures.yml",
	crossed:  "expected-crossed.yml",
	asClient: "expected-client.yml",
}

type options struct {
	npm        string // the folder with node_modules
	expected   string // the folder of the lists of expected failures
	table      string // where the table goes besides stdout; empty for nowhere
	directOnly bool
	verbose    bool
	keep       bool
	runTimeout time.Duration // of one run of the suite
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer func() {
		if o.keep {
			fmt.Println("files are kept in", work)
			return
		}
		_ = os.RemoveAll(work)
	}()
	expected := make(map[kind][]expectation)
	for k, name := range expectedFiles {
		if expected[k], err = readExpected(filepath.Join(o.expected, name)); err != nil {
			return err
		}
	}
	r, err := newRig(ctx, o, work)
	if err != nil {
		return err
	}
	rep, err := r.all(ctx)
	if err != nil {
		return err
	}
	return conclude(os.Stdout, o, rep, expected)
}

func parse(args []string) (options, error) {
	root, err := harness.Root()
	if err != nil {
		return options{}, err
	}
	var o options
	fs := flag.NewFlagSet("conformance", flag.ContinueOnError)
	fs.StringVar(&o.npm, "npm", filepath.Join(root, ".cache", "npm"), "`folder` in which the suite is installed")
	fs.StringVar(&o.expected, "expected-failures", filepath.Join(root, "test", "conformance"),
		"`folder` with the lists of expected failures")
	fs.StringVar(&o.table, "table", "", "`file` that gets the tables too")
	fs.BoolVar(&o.directOnly, "direct-only", false, "test the reference server alone, without a proxy")
	fs.BoolVar(&o.verbose, "v", false, "print what the suite prints")
	fs.BoolVar(&o.keep, "keep", false, "keep the results and logs")
	fs.DurationVar(&o.runTimeout, "run-timeout", 5*time.Minute, "time for one run of the suite")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return o, nil
}
