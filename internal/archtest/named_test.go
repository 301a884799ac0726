package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testNames = regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+\b`)
	testFuncs = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]+)\(t \*testing\.T\)`)
)

// TestDocsNameTestsThatExist: what the documents promise is shown by the tests that they name.
func TestDocsNameTestsThatExist(t *testing.T) {
	root := repositoryRoot(t)
	have := map[string]bool{}
	for _, dir := range []string{"cmd", "internal", "mcpproxy", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range testFuncs.FindAllStringSubmatch(string(text), -1) {
				have[m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range testNames.FindAllString(string(text), -1) {
			if named++; !have[name] {
				t.Errorf("%s names %s, and there is no such test", filepath.Base(page), name)
			}
		}
	}
	if named == 0 {
		t.Error("no document names a test")
	}
}
