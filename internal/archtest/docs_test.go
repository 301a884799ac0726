package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// namedTest is a file of tests, or a test, as pages name them.
	namedTest = regexp.MustCompile("`((?:[\\w/]+/)?\\w+_test\\.go|Test\\w+)`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// homeOfTests is where tests are that a page names without a folder.
const homeOfTests = "test/bridge"

// TestTestsThatPagesNameAreThere: whoever reads what works can look at how it is shown. A test stands in the file that is
// named last before it under the same heading, and every row of a table that tells what shows it names one.
func TestTestsThatPagesNameAreThere(t *testing.T) {
	root := repositoryRoot(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		n, faults := testsNamed(string(text), func(file string) []string { return testsIn(root, file) })
		for _, fault := range faults {
			t.Errorf("%s: %s", filepath.Base(page), fault)
		}
		found += n
	}
	if found == 0 {
		t.Error("no page names a test")
	}
}

// testsIn gives the tests of a file, nil where it is not there.
func testsIn(root, file string) (names []string) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil
	}
	names = []string{}
	for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// testsNamed gives how many tests a page names, and what is wrong with them.
func testsNamed(page string, testsIn func(file string) []string) (n int, faults []string) {
	file, shows := "", false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			file = ""
		case !strings.HasPrefix(line, "|"):
			shows = false
		case strings.HasSuffix(line, "| shown by |"):
			shows = true
			continue
		}
		before := n
		for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
			name := m[1]
			if strings.HasSuffix(name, ".go") {
				file = name
				if !strings.Contains(name, "/") {
					file = homeOfTests + "/" + name
				}
				if testsIn(file) == nil {
					faults = append(faults, "there is no file "+file)
				}
				continue
			}
			n++
			if !slices.Contains(testsIn(file), name) {
				faults = append(faults, name+" is not in "+file)
			}
		}
		if shows && n == before && !strings.HasPrefix(line, "|-") {
			faults = append(faults, "no test shows "+line)
		}
	}
	return n, faults
}

func TestWhatIsWrongWithNamedTests(t *testing.T) {
	files := map[string][]string{"test/bridge/a_test.go": {"TestA", "TestB"}, "test/b/b_test.go": {"TestC"}}
	testsIn := func(file string) []string { return files[file] }
	for name, c := range map[string]struct {
		page  string
		n     int
		fault string
	}{
		"good":             {"It works (`a_test.go` `TestA`).\n\nThat too (`TestB`, `test/b/b_test.go` `TestC`).", 3, ""},
		"no test":          {"It works.", 0, ""},
		"a missing file":   {"It works (`c_test.go`).", 0, "there is no file test/bridge/c_test.go"},
		"a missing test":   {"It works (`a_test.go` `TestC`).", 1, "TestC is not in test/bridge/a_test.go"},
		"another heading":  {"`a_test.go` `TestA`\n# More\n`TestB`", 2, "TestB is not in "},
		"a table":          {"| a | shown by |\n|---|---|\n| x | `a_test.go` `TestA` |\n\n| b |\n|---|\n| y |", 1, ""},
		"a row of nothing": {"| a | shown by |\n|---|---|\n| x | |", 0, "no test shows | x | |"},
	} {
		t.Run(name, func(t *testing.T) {
			n, faults := testsNamed(c.page, testsIn)
			if got := strings.Join(faults, "\n"); n != c.n || got != c.fault {
				t.Errorf("%d tests, %q; want %d, %q", n, got, c.n, c.fault)
			}
		})
	}
}
