package state

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestErasOutliveTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := open(t, dir)
	s.SetEra("a", "legacy")
	s.SetEra("b", "modern")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for def, want := range map[string]string{"a": "legacy", "b": "modern"} {
		if got, ok := s.Era(def); !ok || got != want {
			t.Errorf("Era(%q) = %q, %v; want %q", def, got, ok, want)
		}
	}
	if _, ok := s.Era("c"); ok {
		t.Error("an era that nobody set is known")
	}
}

func TestOneProcessHasTheDirectory(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Open gives %v, want ErrLocked", err)
	}
}

func TestWithoutADirectoryItIsMemory(t *testing.T) {
	s := open(t, "")
	s.SetEra("a", "legacy")
	if got, _ := s.Era("a"); got != "legacy" {
		t.Errorf("Era = %q", got)
	}
}

func TestASpoiltFileIsLearntAgain(t *testing.T) {
	for _, text := range []string{"{", "null", "[]", ""} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, erasFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		s.SetEra("a", "modern")
		if got, _ := s.Era("a"); got != "modern" {
			t.Errorf("after a file of %q: Era = %q", text, got)
		}
		_ = s.Close()
	}
}
