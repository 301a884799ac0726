package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

const (
	productPackage = "github.com/mcp-proxy/mcp-proxy/cmd/mcp-proxy"
	// upstreamID is the upstream's name in the product's configuration.
	upstreamID = "up"
	// startLimit bounds the start of the product until it is ready.
	startLimit = 30 * time.Second
	// pollEvery is the pause between two looks at a starting product.
	pollEvery = 20 * time.Millisecond
)

// build compiles the product into dir and returns the file. It must run inside
// the module.
func build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "mcp-proxy")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, productPackage)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", productPackage, err, bytes.TrimSpace(out))
	}
	return file, nil
}

// productConfig is the configuration with one upstream and nothing else that
// differs from the defaults, but for files of its own.
func productConfig(upstream map[string]any, era load.Era, stateDir string) ([]byte, error) {
	entry := map[string]any{"protocol": string(era)}
	for name, value := range upstream {
		entry[name] = value
	}
	return json.MarshalIndent(map[string]any{
		"mcpServers": map[string]any{upstreamID: entry},
		"proxy":      map[string]any{"state_dir": stateDir},
	}, "", "  ")
}

// exposedName is what the product calls the upstream's tool by default.
func exposedName(tool string) string { return upstreamID + "__" + tool }

// startProduct starts binary in front of upstream and waits until it is ready.
// Its files lie in dir, which must be empty.
func startProduct(ctx context.Context, binary, dir string, upstream map[string]any, era load.Era) (*process, error) {
	config, err := productConfig(upstream, era, filepath.Join(dir, "state"))
	if err != nil {
		return nil, err
	}
	configFile := filepath.Join(dir, "mcp-proxy.json")
	if err := os.WriteFile(configFile, config, 0o600); err != nil {
		return nil, err
	}
	// A file, not a pipe: nobody has to read it while time is measured.
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer logFile.Close()
	cmd := exec.Command(binary, "serve", "--config", configFile, "--listen", "127.0.0.1:0", "--log-format", "json")
	cmd.Stderr = logFile
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, end: terminate(cmd)}
	p.watch()
	if err := p.waitReady(ctx, logFile.Name()); err != nil {
		p.stop()
		return nil, fmt.Errorf("starting the product: %w\n%s", err, tail(logFile.Name()))
	}
	return p, nil
}

// waitReady waits for the address in the log and for /readyz to agree.
func (p *process) waitReady(ctx context.Context, logFile string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if p.addr == "" {
			p.addr = listeningAddr(logFile)
		}
		if p.addr != "" && answersReady(ctx, p.addr) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.exited:
			return fmt.Errorf("it ended: %w", errors.Join(p.fault, errors.New("before it was ready")))
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", context.Cause(ctx))
		}
	}
}

// listeningAddr is the host and port of the log record that tells them, or
// empty.
func listeningAddr(logFile string) string {
	text, err := os.ReadFile(logFile)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(text) {
		var record struct{ Msg, URL string }
		if json.Unmarshal(line, &record) != nil || record.Msg != "listening" {
			continue
		}
		if u, err := url.Parse(record.URL); err == nil {
			return u.Host
		}
	}
	return ""
}

func answersReady(ctx context.Context, addr string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// tail is the end of a log, for error messages.
func tail(file string) []byte {
	const most = 2000
	text, err := os.ReadFile(file)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-most):])
}
