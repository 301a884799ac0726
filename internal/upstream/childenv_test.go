package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
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

func TestWhatIsSecretOfAServer(t *testing.T) {
	cfg := &config.Server{AuthToken: "token-value", Headers: map[string]config.Secret{"X": "header-value", "Y": "short"},
		Env: map[string]string{"API_KEY": "key-value", "my_password": "pass-value", "LOG_LEVEL": "verbose-value"}}
	got := secretValues(cfg)
	slices.Sort(got)
	if want := []string{"header-value", "key-value", "pass-value", "token-value"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// drained gives what the log and the memory hold after a child has written this to stderr.
func drained(t *testing.T, r *rig, text string, secrets ...string) (logged, kept []string) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	l := newTailLog(zap.New(core), r.count, newMasker(secrets))
	l.drain(strings.NewReader(text))
	l.settle()
	for _, e := range logs.All() {
		logged = append(logged, e.ContextMap()["line"].(string))
	}
	return logged, l.last(stderrKept)
}

func TestStderrBecomesLines(t *testing.T) {
	long := strings.Repeat("y", stderrLine)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"one\ntwo\r\nthree", []string{"one", "two", "three"}},
		{"10%\r50%\r100%\n", []string{"10%", "50%", "100%"}},
		{"\n \n\t\n", nil},
		{long + "zzz\nnext\n", []string{long, "next"}},
		{"bad \xff byte\n", []string{"bad \uFFFD byte"}},
	} {
		logged, kept := drained(t, newRig(t), c.text)
		if !slices.Equal(logged, c.want) || !slices.Equal(kept, c.want) {
			t.Errorf("%.40q: logged %.40q, kept %.40q, want %.40q", c.text, logged, kept, c.want)
		}
	}
}

func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logged, kept := drained(t, r, strings.Repeat("line\n", 1000)+"the end\n")
	if len(kept) != stderrKept || kept[stderrKept-1] != "the end" {
		t.Errorf("%d lines are kept, the last of them %q", len(kept), kept[len(kept)-1])
	}
	if dropped := r.dropped(count.DropStderr); len(logged) > 300 || int(dropped)+len(logged) != 1001 {
		t.Errorf("%d lines are logged and %v dropped", len(logged), dropped)
	}
}

// No part of a secret that the configuration knows may be read in the log, wherever the line is cut.
func TestStderrHidesSecrets(t *testing.T) {
	t.Parallel()
	const short, long = "hunter2-hunter2", "hunter2-hunter2-and-more-of-it-0123456789"
	for pad := range stderrLine + 100 {
		if pad > 60 && pad < stderrLine-100 {
			continue
		}
		logged, _ := drained(t, newRig(t), strings.Repeat("=", pad)+long+" "+long+" "+short+"\n", short, long)
		for _, part := range []string{"hunter2", "-and-more"} {
			if strings.Contains(logged[0], part) {
				t.Fatalf("behind %d bytes: %q", pad, logged[0])
			}
		}
		if len(logged[0]) > stderrLine {
			t.Errorf("behind %d bytes: a line of %d bytes", pad, len(logged[0]))
		}
	}
}
