package config

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

func effective(t *testing.T, l *Loaded) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.PrintEffective(&b); err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := yaml.Unmarshal(b.Bytes(), &tree); err != nil {
		t.Fatalf("not YAML: %v\n%s", err, b.String())
	}
	return b.String()
}

// TestPrintEffective compares the whole page with testdata/effective.txt; with -update it is written anew.
func TestPrintEffective(t *testing.T) {
	dir := filepath.Join("testdata", "effective")
	env := variables{"TOKEN": "s3cr3t-1", "KEY": "s3cr3t-2", "PORT": "9000", "XDG_STATE_HOME": "/state"}
	l := Load(Options{WorkDir: dir, Path: "mcp.jsonc", Getenv: env.get})
	if len(l.Errors()) > 1 {
		t.Fatal(l.Errors())
	}
	got := effective(t, l)
	if strings.Contains(got, "s3cr3t") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	golden := filepath.Join("testdata", "effective", "want.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s", got)
	}
}

// TestEffectiveLoadsAgain holds that what is printed is a configuration with the same meaning.
func TestEffectiveLoadsAgain(t *testing.T) {
	text := `{"servers":{"no":{"command":"/x","args":["-a",1],"tool_prefix":"","tool_policy":{"deny":["d"]},"request_meta":{"n":1.10}},
		"b":{"url":"http://h/mcp","type":"sse","lazy":true}},
		"proxy":{"profiles":{"p":{"servers":["no"]}},"allowed_hosts":["h"],"naming":{"max_length":64},"state_dir":""}}`
	first := loadText(t, text, variables{"HOME": "/h"})
	page := effective(t, first)
	again := Load(Options{Path: write(t, t.TempDir(), "c.yaml", page), Getenv: variables{}.get})
	if len(again.Problems) > 0 {
		t.Fatalf("%v\n%s", again.Problems, page)
	}
	if second := effective(t, again); stripComments(second) != stripComments(page) {
		t.Errorf("printed again it is\n%s\nand not\n%s", second, page)
	}
}

func stripComments(page string) string {
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, "  # ")
	}
	return strings.Join(lines, "\n")
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestPrintEffectiveTellsOfAWriterThatFails(t *testing.T) {
	if err := loadText(t, `{}`, nil).PrintEffective(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("error %v", err)
	}
}

func TestHideArgs(t *testing.T) {
	in := []string{"--token", "abc", "--api-key=abc", "-e", "KEY=abc", "--header", "Authorization: Bearer abc", "https://me:abc@h/?k=abc", "--root", "/data", "--verbose", "a=b"}
	want := []string{"--token", "<secret>", "--api-key=<secret>", "-e", "KEY=<secret>", "--header", "<secret>", "https://<secret>@h/?k=<secret>", "--root", "/data", "--verbose", "a=b"}
	for i, got := range hideArgs(in) {
		if got != want[i] {
			t.Errorf("%s is shown as %s and not %s", in[i], got, want[i])
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	var b bytes.Buffer
	l := loadText(t, `{"mcpServers":{"a":{"url":"http://u:hunter2@h/","headers":{"X":"hunter2"}}},"proxy":{"auth":{"tokens":[{"name":"n","token":"hunter2"}]}}}`, nil)
	one(t, l)
	b.WriteString(effective(t, l))
	for _, p := range l.Problems {
		b.WriteString(p.String())
	}
	if strings.Contains(b.String(), "hunter2") {
		t.Error(b.String())
	}
}
