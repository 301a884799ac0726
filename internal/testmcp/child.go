package testmcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Environment variables that make the test binary play an upstream.
const (
	envChild  = "TESTMCP_CHILD"
	envRecord = "TESTMCP_RECORD"
)

// Watched says that the race detector watches this test run, so that large data takes long.
const Watched = raceEnabled

var (
	registryMu sync.Mutex
	registry   = map[string]func(args []string) *Server{}
)

// Register names a behaviour, so that a child process can play it. Call it from a variable or init function of
// the test package, for it must have happened when TestMain begins. Args are those given to Command. It panics
// if the name is taken.
func Register(name string, build func(args []string) *Server) struct{} {
	registryMu.Lock()
	defer registryMu.Unlock()
	if registry[name] != nil {
		panic("testmcp: behaviour " + name + " is registered twice")
	}
	registry[name] = build
	return struct{}{}
}

// Registered gives the server of that name for these arguments, to serve it over HTTP. It panics if there is none.
func Registered(name string, args ...string) *Server {
	registryMu.Lock()
	build := registry[name]
	registryMu.Unlock()
	if build == nil {
		panic(fmt.Sprintf("testmcp: no behaviour %q, only %q", name, slices.Sorted(maps.Keys(registry))))
	}
	return build(args)
}

// Main is a whole TestMain: it plays a child if this process is one, else runs the tests.
func Main(m *testing.M) {
	MaybeRunChild()
	Cleanup(m.Run())
}

// MaybeRunChild comes first in a TestMain of one's own. In a child it plays the behaviour and never returns.
func MaybeRunChild() {
	if name := os.Getenv(envChild); name != "" {
		runChild(Registered(name, os.Args[1:]...))
	}
}

// Cleanup removes what the kit built for this test run and exits with the code. It fits goleak.Cleanup.
func Cleanup(code int) {
	removeBuilt()
	os.Exit(code)
}

// Command gives what a configuration entry must say to start a child with this behaviour, unrecorded.
func Command(name string, args ...string) (command string, arguments []string, env map[string]string) {
	Registered(name, args...) // a wrong name fails here, not in the child
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env = map[string]string{envChild: name}
	if raceEnabled { // else each exit takes a second, which the detector spends waiting for further reports
		env["GORACE"] = "atexit_sleep_ms=0"
	}
	return exe, args, env
}

// Command gives what a configuration entry must say to start a child that reports to this recorder.
func (r *Recorder) Command(name string, args ...string) (command string, arguments []string, env map[string]string) {
	command, arguments, env = Command(name, args...)
	env[envRecord] = r.path
	return command, arguments, env
}

// Entry is Command as the JSON of a server entry; more holds further raw members such as `"instances":2`.
func (r *Recorder) Entry(name string, args []string, more ...string) string {
	command, arguments, env := r.Command(name, args...)
	return stdioEntry(command, arguments, env, more)
}

// Scripts that start a child in the ways of launchers, for EntryVia. The child is "$0" with "$@".
const (
	// BelowShells starts the child below two shells that do not pass signals on, as npx does.
	BelowShells = `exec 3<&0; sh -c 'exec 4<&3; "$0" "$@" <&4 & wait' "$0" "$@" & wait`
	// OutOfGroup starts the child in a session of its own behind a shell that forwards nothing but the pipes, as
	// a container's client does.
	OutOfGroup = `exec 3<&0; setsid "$0" "$@" <&3 & wait`
)

// EntryVia is Entry with a shell script between the configuration and the child.
func (r *Recorder) EntryVia(script, name string, args []string, more ...string) string {
	command, arguments, env := r.Command(name, args...)
	return stdioEntry("sh", append([]string{"-c", script, command}, arguments...), env, more)
}

func stdioEntry(command string, args []string, env map[string]string, more []string) string {
	if args == nil {
		args = []string{}
	}
	b, err := json.Marshal(map[string]any{"command": command, "args": args, "env": env})
	if err != nil {
		panic(err)
	}
	return strings.Join(append([]string{string(b[:len(b)-1])}, more...), ",") + "}"
}

// Entry gives the JSON of a server entry for this server; more holds further raw members.
func (h *HTTPServer) Entry(more ...string) string {
	return "{" + strings.Join(append([]string{`"url":` + Quote(h.URL)}, more...), ",") + "}"
}
