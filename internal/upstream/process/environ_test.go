package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestTheEnvironmentOfAChild(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "MCP_PROXY_TOKEN=secret", "AWS_SECRET_ACCESS_KEY=secret", "WANTED=yes", "TZ=UTC", "odd"}
	cfg := &config.Server{Env: map[string]string{"TZ": "Europe/Zurich", "B": "2", "A": "1=1"}, InheritEnv: []string{"WANTED", "ABSENT"}}
	got := childEnv(cfg, own)
	want := []string{"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "WANTED=yes", "A=1=1", "B=2", "TZ=Europe/Zurich"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestWhereACommandIsFound(t *testing.T) {
	first, second, work := t.TempDir(), t.TempDir(), t.TempDir()
	put := func(path string, mode os.FileMode) string {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put(filepath.Join(first, "plain"), 0o644)
	inSecond := put(filepath.Join(second, "plain"), 0o755)
	both := put(filepath.Join(first, "both"), 0o755)
	put(filepath.Join(second, "both"), 0o755)
	here := put(filepath.Join(work, "here"), 0o755)
	put(filepath.Join(work, "flat"), 0o644)
	for _, c := range []struct{ command, path, want, err string }{
		{"both", first + ":" + second, both, ""},
		{"plain", first + ":" + second, inSecond, ""}, // one that cannot be run is passed over
		{"here", first, "", `"here" was not found; PATH is "` + first},
		{"here", ".:" + first, "", "was not found"}, // never the working directory
		{"./here", "", here, ""},
		{here, "", here, ""},
		{"./flat", "", "", "not executable"},
		{"./none", "", "", "no such file"},
		{"./", "", "", "it is a directory"},
	} {
		got, err := lookPath(c.command, work, []string{"PATH=/wrong", "X=1", "PATH=" + c.path})
		switch {
		case c.err == "" && (err != nil || got != c.want):
			t.Errorf("%s: %s, %v; want %s", c.command, got, err, c.want)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s", c.command, err, c.err)
		}
	}
}
