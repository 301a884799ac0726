package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// baseEnv are the variables of our own environment that every child gets. Nothing else of it reaches a child unless the
// configuration names it: the proxy's own secrets live there.
var baseEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"DOCKER_HOST", "NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "npm_config_cache", "npm_config_prefix", "UV_CACHE_DIR",
	// Windows
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	"PROGRAMFILES", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
}

// childEnv builds a child's environment: the base, what inherit_env names, and on top what the configuration gives.
func childEnv(cfg *config.Server, own []string) []string {
	var out []string
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		if _, given := cfg.Env[name]; given {
			continue
		}
		if strings.HasPrefix(name, "LC_") || slices.Contains(baseEnv, name) || slices.Contains(cfg.InheritEnv, name) {
			out = append(out, kv)
		}
	}
	names := make([]string, 0, len(cfg.Env))
	for name := range cfg.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out = append(out, name+"="+cfg.Env[name])
	}
	return out
}

// lookPath finds the command in the child's own PATH, which the configuration may have set.
func lookPath(command, cwd string, environ []string) (string, error) {
	if strings.ContainsRune(command, filepath.Separator) || strings.Contains(command, "/") {
		if !filepath.IsAbs(command) && cwd != "" {
			command = filepath.Join(cwd, command)
		}
		return command, runnable(command)
	}
	var path string
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the working directory is no place to find a command in
		}
		for _, ext := range executableExts(environ) {
			if full := filepath.Join(dir, command+ext); runnable(full) == nil {
				return full, nil
			}
		}
	}
	return "", fmt.Errorf("the command %q was not found; PATH is %q", command, path)
}

// runnable tells in the system's words why a file cannot be started.
func runnable(path string) error {
	info, err := os.Stat(path)
	var pe *os.PathError
	switch {
	case errors.As(err, &pe):
		return fmt.Errorf("cannot start %q: %w", path, pe.Err)
	case err != nil:
		return fmt.Errorf("cannot start %q: %w", path, err)
	case info.IsDir():
		return fmt.Errorf("cannot start %q: it is a directory", path)
	case !executable(info):
		return fmt.Errorf("cannot start %q: permission denied (it is not executable)", path)
	}
	return nil
}
