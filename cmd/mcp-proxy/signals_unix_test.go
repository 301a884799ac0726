//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes this test binary the program itself.
const asProgram = "MCP_PROXY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// Commands that start servers for a moment end them too when they are ended at once.
func TestASecondSignalLeavesNoServer(t *testing.T) {
	for _, command := range []string{"check --connect", "approve --connect", "call"} {
		t.Run(command, func(t *testing.T) {
			dir := t.TempDir()
			fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "mcp.json")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			// A server that never says anything, nor ends before the test.
			text := `{"mcpServers":{"stubborn":{"command":"sh","args":["-c","trap '' TERM; exec 3>'` + fifo + `'; while [ -e '` + fifo + `' ]; do sleep 1; done"]}},"proxy":{"startup_grace":"10m","pin":true,"state_dir":"` + dir + `"}}`
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args := append(strings.Fields(command), "--config", file)
			if command == "call" {
				args = append(args, "tool")
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait()
				close(ended)
			}()
			defer func() { _ = cmd.Process.Kill() }()
			held, err := os.Open(fifo) // waits for the server
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			for again := time.NewTicker(20 * time.Millisecond); ; <-again.C { // two in one moment may be taken for one
				_ = cmd.Process.Signal(os.Interrupt)
				select {
				case <-ended:
				default:
					continue
				}
				break
			}
			left := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, held)
				close(left)
			}()
			select {
			case <-left:
			case <-time.After(30 * time.Second):
				t.Error("the server lives on")
			}
		})
	}
}
