// Command mcp-proxy puts one URL in front of many MCP servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
)

// version is set by the linker in releases.
var version = ""

// The exit codes.
const (
	exitOK    = 0
	exitError = 1 // a wrong configuration, or a start that failed
	exitUsage = 2
)

// command is one subcommand.
type command struct {
	name, args, what string
	run              func(ctx context.Context, args []string) int
}

func commands() []command {
	return []command{
		{"serve", "[--config FILE] [--demo] [--listen ADDR] [--admin-listen ADDR] [--log-level L] [--log-format json|console]", "serve (the default)", serve},
		{"check", "[--config FILE] [--connect] [--print] [--strict]", "tell every mistake of a configuration, and the final names", check},
		{"stdio", "[--config FILE | --url URL] [--profile NAME | --server ID] [--log-level L]", "serve one client over stdin and stdout, or connect it with a running proxy", stdio},
		{"call", "[--url URL | --config FILE] NAME [JSON]", "call one tool and print its result", call},
		{"connect", "CLIENT [--write] [--url URL] [--name NAME] [--token-env VARIABLE]", "show, or write, what a client needs to use a running proxy", connect},
		{"import", "CLIENT...", "print a configuration with the servers that other clients have", importServers},
		{"approve", "[--config FILE] [--list] [--connect] [SERVER [TOOL...]]", "show and approve the tools of pinned servers that are new or have changed", approve},
		{"health", "[--url URL]", "exit 0 if a running proxy is alive, for health checks", health},
		{"demo-server", "[--http ADDR]", "run a small MCP server to try things with", demoServer},
		{"version", "", "print the version", printVersion},
	}
}

func main() {
	code, done := asInit()
	if !done {
		code = run(os.Args[1:])
	}
	os.Exit(code)
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal ends in order. With the second one the process ends at once: by endAtOnce where it has others to
	// end, and else by the system's own handling, which is back then.
	context.AfterFunc(ctx, stop)
	name := "serve"
	if len(args) == 1 && slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		args = []string{"help"} // all commands, and not only those flags that serve has
	}
	if len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		name, args = args[0], args[1:]
	}
	if name == "help" {
		usage(os.Stdout)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args)
		}
	}
	fmt.Fprintf(os.Stderr, "mcp-proxy: there is no command %q\n\n", name)
	usage(os.Stderr)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "mcp-proxy: one URL in front of many MCP servers")
	fmt.Fprintln(w)
	for _, c := range commands() {
		fmt.Fprintf(w, "  mcp-proxy %s %s\n        %s\n", c.name, c.args, c.what)
	}
	fmt.Fprintln(w, "\nWithout --config the configuration is the variable MCP_PROXY_CONFIG (a path or the text itself), or the first of\nmcp-proxy.json, mcp-proxy.jsonc, mcp-proxy.yaml, .mcp.json and mcp.json in the working directory.\n\nmcp-proxy COMMAND --help tells the flags of a command.")
}

// parse reads the flags of a subcommand. ok is false where the process is to end with the code.
func parse(fs *flag.FlagSet, args []string) (code int, ok bool) {
	fs.Init(fs.Name(), flag.ContinueOnError)
	fs.Usage = func() {
		for _, c := range commands() {
			if c.name == fs.Name() {
				fmt.Fprintf(fs.Output(), "usage: mcp-proxy %s %s\n%s\n", c.name, c.args, c.what)
			}
		}
		fs.PrintDefaults()
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, false
	case err != nil:
		return exitUsage, false
	}
	return exitOK, true
}

// noMore refuses arguments that a subcommand does not take.
func noMore(fs *flag.FlagSet) bool {
	if fs.NArg() == 0 {
		return true
	}
	fmt.Fprintf(os.Stderr, "mcp-proxy %s: unexpected argument %q\n", fs.Name(), fs.Arg(0))
	return false
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "mcp-proxy:", err)
	return exitError
}

func printVersion(context.Context, []string) int {
	fmt.Println("mcp-proxy", versionText())
	return exitOK
}

// versionText is the version of a release, or what the build knows of itself.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "0.0.0-" + s.Value[:12]
		}
	}
	return "0.0.0-dev"
}
