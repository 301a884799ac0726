package obs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logged writes one record of each level to a file logger and gives the file's lines.
func logged(t *testing.T, c config.Log) []string {
	t.Helper()
	c.File = filepath.Join(t.TempDir(), "proxy.log")
	log, closer, err := NewLogger(c)
	if err != nil {
		t.Fatal(err)
	}
	named := log.Named("door")
	named.Debug("a", zap.String("k", "v"))
	named.Info("b", zap.Duration("took", 1500*time.Millisecond))
	named.Warn("c")
	named.Error("d")
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestLoggerLevels(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "": 3, "info": 3, "warn": 2, "error": 1} {
		if got := logged(t, config.Log{Level: level}); len(got) != want {
			t.Errorf("level %q: %d lines, want %d: %q", level, len(got), want, got)
		}
	}
}

func TestLoggerJSON(t *testing.T) {
	lines := logged(t, config.Log{Level: "info", Format: "json"})
	var rec map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &rec); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{"level": "info", "msg": "b", "logger": "door", "took": "1.5s"} {
		if rec[k] != want {
			t.Errorf("%s is %v, want %q", k, rec[k], want)
		}
	}
	ts, _ := rec["ts"].(string)
	if _, err := time.Parse("2006-01-02T15:04:05.000Z0700", ts); err != nil {
		t.Errorf("ts is no ISO 8601 time: %v", err)
	}
}

func TestLoggerConsole(t *testing.T) {
	line := logged(t, config.Log{Level: "error", Format: "console"})[0]
	if json.Valid([]byte(line)) || !strings.Contains(line, "ERROR\tdoor\td") {
		t.Errorf("the console record is %q", line)
	}
}

func TestLoggerRefuses(t *testing.T) {
	for _, c := range []config.Log{{Level: "loud"}, {Level: "INFO "}, {Format: "xml"}} {
		if _, _, err := NewLogger(c); !errors.Is(err, ErrLogSetting) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, _, err := NewLogger(config.Log{File: filepath.Join(t.TempDir(), "no", "such", "dir", "x.log")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file in no directory: %v", err)
	}
}

func TestLoggerAppends(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.log")
	for range 2 {
		log, closer, err := NewLogger(config.Log{File: file})
		if err != nil {
			t.Fatal(err)
		}
		log.Info("started")
		closer.Close()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("started")); n != 2 {
		t.Errorf("%d records after two starts, want 2", n)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestRegistry(t *testing.T) {
	reg := NewRegistry("1.2.3")
	want := map[string]bool{"mcp_proxy_build_info": false, "go_goroutines": false}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if _, ok := want[f.GetName()]; ok {
			want[f.GetName()] = true
		}
	}
	for name, seen := range want {
		if !seen {
			t.Errorf("%s is missing", name)
		}
	}
	if n, err := testutil.GatherAndCount(reg, "mcp_proxy_build_info"); n != 1 || err != nil {
		t.Errorf("%d series of mcp_proxy_build_info, %v", n, err)
	}
	if problems, err := testutil.GatherAndLint(reg, "mcp_proxy_build_info"); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	NewRegistry("1.2.3") // a second proxy in the same process is no conflict
}
