// Command bench measures how fast mcp-proxy passes calls on, beside the
// standard library's httputil.ReverseProxy in front of the same upstream on
// the same machine in the same run.
//
//	go run ./bench [-quick] [-check] [-control] [-only REGEXP] [-product FILE] [-round D] [-rounds N]
//
// It prints, for each cell and each way a call can travel, calls per second,
// the processor time of the proxy's process for one call, and the ratio of
// both to ReverseProxy. Every answer is checked; a wrong one is a failure.
// With -check, falling short of a floor is a failure too. It exits with 1 on a
// failure and with 2 when it was called wrongly.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	quick, check, control bool
	only                  *regexp.Regexp
	product               string
	round                 time.Duration
	rounds                int
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.BoolVar(&opts.quick, "quick", false, "a few seconds in all, with rough figures")
	flags.BoolVar(&opts.check, "check", false, "compare with the floors and fail below them")
	flags.BoolVar(&opts.control, "control", false, "measure a second ReverseProxy and the upstream itself in the product's place")
	flags.StringVar(&opts.product, "product", "", "the mcp-proxy `file` to measure (default: built from this module)")
	flags.DurationVar(&opts.round, "round", 500*time.Millisecond, "how long one round takes")
	flags.IntVar(&opts.rounds, "rounds", 7, "how many rounds; many short ones even out what else the machine does")
	flags.Func("only", "measure only the cells whose name matches the `regexp`, such as '64 KiB, 32'", func(text string) error {
		var err error
		opts.only, err = regexp.Compile(text)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if opts.quick {
		opts.round, opts.rounds = min(opts.round, 90*time.Millisecond), min(opts.rounds, 3)
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unknown argument %q", flags.Arg(0))
	case opts.round < 10*time.Millisecond || opts.round > time.Minute || opts.rounds < 1 || opts.rounds > 100:
		err = errors.New("-round goes from 10ms to 1m, -rounds from 1 to 100")
	case opts.check && opts.control:
		err = errors.New("-check needs the product, which -control leaves out")
	}
	if err != nil {
		fmt.Fprintln(out, err)
	}
	return opts, err
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code.
func run(args []string, out, faults io.Writer) int {
	if played, err := runRole(args); played {
		if err != nil {
			fmt.Fprintln(faults, "bench:", err)
			return 1
		}
		return 0
	}
	opts, err := parseOptions(args, faults)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := bench(ctx, opts, out, faults)
	if err != nil {
		fmt.Fprintln(faults, "bench:", err)
	}
	if err != nil || !good {
		return 1
	}
	return 0
}

// bench runs the plan and prints what came of it. good is false when a subject
// failed or fell short of a floor.
func bench(ctx context.Context, opts options, out, progress io.Writer) (good bool, err error) {
	p := newPlan(opts)
	if len(p.cells) == 0 {
		return false, errors.New("no cell has a name like that")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit(), errors.New("the whole run took too long"))
	defer cancel()
	dir, err := os.MkdirTemp("", "mcp-proxy-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	binary := opts.product
	if binary == "" && !opts.control {
		if binary, err = build(ctx, dir); err != nil {
			return false, err
		}
	}
	f, err := newFleet(ctx, dir, binary)
	if err != nil {
		return false, err
	}
	results := measureAll(ctx, f, &p, progress)
	err = errors.Join(f.stop(), context.Cause(ctx))
	fmt.Fprintf(out, "%s, %s/%s, %d processors; %d rounds of %v, medians\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.rounds, p.round)
	err = errors.Join(err, printTable(out, results))
	good = !anyFailed(results)
	if opts.check {
		fmt.Fprintln(out)
		good = printVerdicts(out, verdicts(results)) && good
	}
	return good, err
}

func measureAll(ctx context.Context, f *fleet, p *plan, progress io.Writer) []result {
	var results []result
	for i, c := range p.cells {
		fmt.Fprintf(progress, "%d of %d: %s\n", i+1, len(p.cells), c)
		outcomes := measure(ctx, f, p, c)
		if ctx.Err() != nil {
			break // half a cell says nothing
		}
		results = append(results, result{c, outcomes})
	}
	return results
}

func anyFailed(results []result) bool {
	for _, r := range results {
		for _, o := range r.outcomes {
			if o.err != nil {
				return true
			}
		}
	}
	return false
}
