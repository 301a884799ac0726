package testmcp

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// StartStdio runs the program's stdio command on this configuration and gives a client of its pipes, not opened.
func StartStdio(t testing.TB, era Era, config string, args ...string) *PipeClient {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcp-proxy.json")
	check(t, os.WriteFile(file, []byte(config), 0o600))
	return NewPipeClient(t, era, nil, Binary(t), append([]string{"stdio", "--config", file}, args...)...)
}

// Ran is how a command of the program ended.
type Ran struct {
	Code           int // -1 if it was killed
	Stdout, Stderr string
}

// Run runs the program with these arguments to its end, in a directory of its own that holds these files.
func Run(t testing.TB, files map[string]string, env []string, args ...string) Ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(smallEnv(t), env...)
	for name, text := range files {
		check(t, os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600))
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%q did not end within %v", args, Patience)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Ran{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}
