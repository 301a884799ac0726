package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

// revision is one revision of the protocol as the suite tests it.
type revision struct {
	name      string
	stateless bool // the mode the reference server must run in
	// checks is how many checks the pinned suite makes against the reference server. It guards against a suite that
	// runs half and finds nothing wrong.
	checks int
	// clientScenarios is how many scenarios it has for clients; zero where they are all about logging in.
	clientScenarios int
}

var revisions = []revision{
	{name: "2025-03-26", checks: 3},
	{name: "2025-06-18", checks: 56, clientScenarios: 5},
	{name: "2025-11-25", checks: 82, clientScenarios: 19},
	{name: "2026-07-28", checks: 153, clientScenarios: 33, stateless: true},
}

// revisionOf gives the revision of that name, which must be one of ours.
func revisionOf(name string) revision {
	return revisions[slices.IndexFunc(revisions, func(r revision) bool { return r.name == name })]
}

// results maps a scenario to the outcome of its checks, in the order in which the suite made them.
type results map[string][]check

// check is one entry of a scenario's checks.json.
type check struct {
	ID           string `json:"id"`
	Description  string `json:"description"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

// The statuses of a check that count, and that of an advice that was not followed; the others are remarks.
const (
	statusSuccess = "SUCCESS"
	statusFailure = "FAILURE"
	statusWarning = "WARNING"
)

// totals counts passed and failed checks.
func (r results) totals() (passed, failed int) {
	for _, checks := range r {
		for _, c := range checks {
			switch c.Status {
			case statusSuccess:
				passed++
			case statusFailure:
				failed++
			}
		}
	}
	return passed, failed
}

// suite is the installed conformance suite.
type suite struct {
	node    string
	script  string
	timeout time.Duration
	verbose bool
}

func newSuite(o options) (suite, error) {
	node, err := harness.Node(o.npm)
	if err != nil {
		return suite{}, err
	}
	script := filepath.Join(o.npm, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		return suite{}, fmt.Errorf("the suite is not installed, run make npm: %w", err)
	}
	return suite{node: node, script: script, timeout: o.runTimeout, verbose: o.verbose}, nil
}

// server tests the server at url and gives what the suite wrote into dir.
func (s suite) server(ctx context.Context, revision, url, dir string) (results, error) {
	return s.run(ctx, dir, "server", "--url", url, "--suite", "all", "--spec-version", revision)
}

// client tests the client that command starts, by mock servers of the suite, all scenarios at once.
func (s suite) client(ctx context.Context, revision, command, dir string) (results, error) {
	return s.run(ctx, dir, "client", "--command", command, "--suite", "all", "--spec-version", revision,
		"--timeout", strconv.FormatInt(scenarioTimeout.Milliseconds(), 10))
}

// scenarioTimeout bounds one client of the suite. Many start at once, each with a proxy of its own.
const scenarioTimeout = 2 * time.Minute

// run starts the suite and gives what it wrote into dir.
func (s suite) run(ctx context.Context, dir string, args ...string) (results, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append(append([]string{s.script}, args...), "-o", dir)...)
	out, err := cmd.CombinedOutput()
	if s.verbose {
		fmt.Printf("%s\n", out)
	}
	// The suite exits 1 when a check fails; that is a result, anything else is not.
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || ctx.Err() != nil) {
		return nil, fmt.Errorf("running the suite: %w\n%s", err, out)
	}
	got, err := readResults(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w\n%s", err, out)
	}
	return got, nil
}

// resultDir is the name of a scenario's folder: <scenario>-<time>, with a word before it where servers are tested. A
// scenario with a slash in its name lies deeper.
var resultDir = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d{2}-\d{2}T[0-9-]+Z$`)

func readResults(dir string) (results, error) {
	out := make(results)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m := resultDir.FindStringSubmatch(filepath.ToSlash(name))
		if m == nil {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(path, "checks.json"))
		if err != nil {
			return err
		}
		var checks []check
		if err := json.Unmarshal(text, &checks); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[m[1]] = append(out[m[1]], checks...)
		return fs.SkipDir
	})
	return out, err
}

// scenarios gives the names in order.
func (r results) scenarios() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
