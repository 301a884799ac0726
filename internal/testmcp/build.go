package testmcp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var (
	buildOnce sync.Once
	builtDir  string
	builtPath string
	buildErr  error
)

// Binary builds the program once in a test run and gives its path. The environment variable MCP_PROXY_BINARY
// names one to be used instead. Whoever uses it ends the test run through Main or Cleanup.
func Binary(t testing.TB) string {
	t.Helper()
	buildOnce.Do(func() { builtPath, buildErr = build() })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return builtPath
}

func build() (string, error) {
	if given := os.Getenv("MCP_PROXY_BINARY"); given != "" {
		return filepath.Abs(given)
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	if builtDir, err = os.MkdirTemp("", "mcp-proxy-build"); err != nil {
		return "", err
	}
	bin := filepath.Join(builtDir, "mcp-proxy")
	args := []string{"build", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/mcp-proxy")...)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return bin, nil
}

func removeBuilt() {
	if builtDir != "" {
		_ = os.RemoveAll(builtDir)
	}
}
