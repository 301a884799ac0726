// Package harness builds and runs the programs that the conformance and interoperability tests put together: the
// proxy itself, servers behind it and clients in front of it.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// poll is the pause between two looks at a condition in another process.
const poll = 20 * time.Millisecond

// Root gives the folder of this module.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", errors.New("not inside the module")
	}
	return filepath.Dir(mod), nil
}

// Build compiles the package, which may be one of a dependency, to the file out.
func Build(ctx context.Context, pkg, out string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out, pkg)
	cmd.Dir = root
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, msg)
	}
	return nil
}

// BuildProxy compiles the proxy into dir and gives the path of the binary. A binary named by MCP_PROXY_BIN is taken
// as it is.
func BuildProxy(ctx context.Context, dir string) (string, error) {
	if bin := os.Getenv("MCP_PROXY_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	out := filepath.Join(dir, "mcp-proxy")
	return out, Build(ctx, "./cmd/mcp-proxy", out)
}

// Node gives the program Node that came with the npm packages in dir. Where they have none for this system, it is the
// one in PATH.
func Node(dir string) (string, error) {
	installed, err := filepath.Glob(filepath.Join(dir, "node_modules", "node-*", "bin", "node"))
	if err != nil {
		return "", err
	}
	if len(installed) > 0 {
		return installed[0], nil
	}
	path, err := exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("no Node in %s, run make npm: %w", dir, err)
	}
	return path, nil
}

// FreeAddr gives a loopback address that nobody listened on a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// WaitListening returns once addr accepts connections.
func WaitListening(ctx context.Context, addr string) error {
	var d net.Dialer
	return until(ctx, addr+" to accept connections", func() bool {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		_ = conn.Close()
		return true
	})
}

// WaitOK returns once a GET of url is answered with 200.
func WaitOK(ctx context.Context, url string) error {
	return until(ctx, url+" to answer 200", func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// until looks at the condition again and again. Another process gives no signal that could be waited for.
func until(ctx context.Context, what string, ok func() bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}
