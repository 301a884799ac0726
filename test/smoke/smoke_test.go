package smoke

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/test/harness"
)

const readyTimeout = time.Minute

// binary gives the program under test.
func binary(t *testing.T) string {
	t.Helper()
	if os.Getenv("MCP_PROXY_SMOKE") == "" {
		t.Skip("MCP_PROXY_SMOKE is not set; make smoke sets it")
	}
	path, err := harness.BuildProxy(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the program to its end and gives the exit code and what it wrote.
func run(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), append([]string{"HOME=" + cmd.Dir, "XDG_STATE_HOME=" + cmd.Dir}, env...)...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), diag.String()
}

func TestBinaryIsStatic(t *testing.T) {
	bin := binary(t)
	if runtime.GOOS != "linux" {
		t.Skip("the image is built for Linux")
	}
	f, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker, which the slim image has not")
		}
	}
}

func TestExitCodes(t *testing.T) {
	bin := binary(t)
	deployed := deployedConfig(t)
	tests := []struct {
		name   string
		args   []string
		env    []string
		code   int
		stdout string // must be in it
		stderr string
	}{
		{name: "version", args: []string{"version"}},
		{name: "unknown command", args: []string{"sreve"}, code: 2, stderr: "sreve"},
		{name: "unknown flag", args: []string{"serve", "--lisen", "127.0.0.1:0"}, code: 2, stderr: "lisen"},
		{name: "no such file", args: []string{"serve", "--config", "missing.json"}, code: 1, stderr: "missing.json"},
		{
			name: "the configuration of deploy", args: []string{"check", "--config", deployed},
			env: []string{"MCP_PROXY_TOKEN=one", "MCP_PROXY_METRICS_TOKEN=two"},
		},
		{
			name: "the same without its tokens", args: []string{"check", "--config", deployed},
			code: 1, stdout: "MCP_PROXY_TOKEN",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := run(t, tt.env, append([]string{bin}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			// A command may tell of a mistake on either stream; that it tells is what counts here.
			if both := stdout + stderr; !strings.Contains(both, tt.stdout) || !strings.Contains(both, tt.stderr) {
				t.Errorf("no word of %q", tt.stdout+tt.stderr)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", stdout, stderr)
			}
		})
	}
}

func deployedConfig(t *testing.T) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "deploy", "mcp-proxy.json")
}

// TestDemo starts the demo, asks for its health in both ways and stops it.
func TestDemo(t *testing.T) {
	bin := binary(t)
	addr, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	p, err := harness.Start(harness.Command{
		Name: "demo", Args: []string{bin, "serve", "--demo", "--listen", addr}, Dir: work, Logs: work,
		Env: []string{"HOME=" + work, "XDG_STATE_HOME=" + work},
	})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			p.Kill()
		}
	}()
	base := "http://" + addr
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		err := p.Ready(t.Context(), readyTimeout, func(ctx context.Context) error { return harness.WaitOK(ctx, base+path) })
		if err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := run(t, nil, bin, "health", "--url", base); code != 0 {
		t.Errorf("health ended with %d: %s", code, stderr)
	}
	listsTools(t, base+"/mcp")
	stopped = true
	if err := p.Stop(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	saysListening(t, filepath.Join(work, "demo.log"), addr)
}

// listsTools makes one request by hand, in the modern era, where it needs no handshake.
func listsTools(t *testing.T, url string) {
	t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"smoke","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/list")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("status %d: %v", resp.StatusCode, err)
	}
	if resp.StatusCode != http.StatusOK || len(answer.Result.Tools) == 0 {
		t.Errorf("status %d, %d tools; want 200 and some", resp.StatusCode, len(answer.Result.Tools))
	}
}

// saysListening looks for the one record that tells where the proxy listens.
func saysListening(t *testing.T, log, addr string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var record struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" &&
			strings.Contains(record.URL, addr) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d records say that it listens, want 1:\n%s", found, text)
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	bin := binary(t)
	for _, ask := range []string{"help", "--help", "-h"} {
		code, out, _ := run(t, nil, bin, ask)
		for _, name := range []string{"serve", "check", "stdio", "call", "health", "demo-server", "version"} {
			if code != 0 || !strings.Contains(out, "mcp-proxy "+name+" ") {
				t.Errorf("%s: exit %d, without %s:\n%s", ask, code, name, out)
			}
		}
	}
	code, _, diag := run(t, nil, bin, "serve", "--help")
	if code != 0 || !strings.Contains(diag, "-listen") || strings.Contains(diag, "demo-server") {
		t.Errorf("serve --help: exit %d\n%s", code, diag)
	}
}
