package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakes holds one file for each kind of mistake; beside it stands what is told. After a change of the messages
// run it with -update and read the difference.
func TestMistakes(t *testing.T) {
	dir := filepath.Join("testdata", "mistakes")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".yaml" {
			continue
		}
		count++
		t.Run(e.Name(), func(t *testing.T) {
			l := Load(Options{WorkDir: dir, Path: e.Name(), Getenv: variables{}.get})
			got := report(l)
			golden := filepath.Join(dir, e.Name()+".txt")
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
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("a secret is told: %s", got)
			}
			if len(l.Problems) == 0 {
				t.Error("there is no problem")
			}
		})
	}
	if count < 25 {
		t.Errorf("only %d files", count)
	}
}

// report is every problem in a line, with what it does to the start.
func report(l *Loaded) string {
	var b strings.Builder
	for _, p := range l.Problems {
		switch {
		case p.Severity == SeverityWarning:
			b.WriteString("       ")
		case p.Stops:
			b.WriteString("stops: ")
		default:
			b.WriteString("fails: ")
		}
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}
