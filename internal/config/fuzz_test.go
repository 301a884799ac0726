package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad reads any text in both syntaxes. Whatever it is, loading ends, what is printed is YAML, no message holds
// the value of a variable, and a text that has no fatal mistake gives servers that are either good or say why not.
func FuzzLoad(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*/*")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, filepath.Ext(name) == ".yaml")
	}
	f.Add([]byte(`{"mcpServers":{"a":{"command":"${A}","args":["${B:-${C}}"],"url":"${D}","headers":{"X":"${file:x}"}}},"proxy":{"profiles":{"p":{"servers":["${E}"]}}}}`), false)
	const canary = "canary-value-7719"
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte, yaml bool) {
		name := "c.json"
		if yaml {
			name = "c.yaml"
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l := Load(Options{Path: path, WorkDir: dir, Getenv: func(string) (string, bool) { return canary, true }})
		for _, p := range l.Problems {
			// A listen address is no secret, and its message is made for the command line too.
			if strings.Contains(p.String(), canary) && !strings.Contains(p.Path, "listen") {
				t.Errorf("a value is told: %s", p)
			}
			if p.Msg == "" {
				t.Errorf("a problem without words: %+v", p)
			}
		}
		effective(t, l)
		if len(l.Fatal()) > 0 {
			return
		}
		for _, s := range l.Config.Servers {
			if s.Problem == nil && (s.Command == "") == (s.URL == "") {
				t.Errorf("server %q has no mistake and command %q, url %q", s.ID, s.Command, s.URL.Reveal())
			}
		}
	})
}

func FuzzEnvFile(f *testing.F) {
	f.Add("A=1\nexport B='x' # c\nC=\"a\nb\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		vars, err := parseEnvFile(text)
		for _, v := range vars {
			if v.name == "" || v.line < 1 || strings.ContainsAny(v.name, "=\n ") {
				t.Errorf("variable %+v", v)
			}
		}
		if err != nil && len(vars) > 0 {
			t.Error("both variables and an error")
		}
	})
}
