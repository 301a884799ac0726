package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTestsDoNotSleep: a test that sleeps is slow or unreliable, mostly both. Within testing/synctest time is not real,
// and a sleep is how it passes; a package that has it may sleep in what its tests share.
func TestTestsDoNotSleep(t *testing.T) {
	root := repositoryRoot(t)
	sleeps, virtual := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "time."+"Sleep(") {
			sleeps[path] = filepath.Dir(path)
		}
		if strings.Contains(string(text), `"testing/synctest"`) {
			virtual[filepath.Dir(path)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, dir := range sleeps {
		if !virtual[dir] {
			t.Errorf("%s sleeps in real time; wait for a condition", path)
		}
	}
}
