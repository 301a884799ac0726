package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what "go list -json" says about a package, as far as it is needed here.
type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
}

// repositoryRoot is the folder of go.mod.
func repositoryRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("asking for the module: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// listPackages gives the packages of this module. Files behind build tags of other systems are not among them.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,Imports", "./...")
	cmd.Dir = repositoryRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("listing the packages: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatalf("reading the list of packages: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestImports(t *testing.T) {
	pkgs := listPackages(t)
	if len(pkgs) < 3 {
		t.Fatalf("only %d packages found; the list is not whole", len(pkgs))
	}
	for _, v := range violations(pkgs) {
		t.Error(v)
	}
}

func TestPackageComments(t *testing.T) {
	for _, p := range listPackages(t) {
		if len(p.GoFiles) > 0 && strings.TrimSpace(p.Doc) == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s uses cgo; the binary is static", p.ImportPath)
		}
	}
}

// violations gives one sentence for every production import that the tables do not allow.
func violations(pkgs []pkg) []string {
	var out []string
	for _, p := range pkgs {
		room := roomOf(p.ImportPath)
		if room == "" {
			out = append(out, fmt.Sprintf("%s is in no room: give it a row in rooms", p.ImportPath))
			continue
		}
		for _, imp := range p.Imports {
			if why := forbidden(room, imp); why != "" {
				out = append(out, fmt.Sprintf("%s must not import %s: %s", p.ImportPath, imp, why))
			}
		}
	}
	return out
}

// forbidden says why room must not import path, or "" when it may.
func forbidden(room, path string) string {
	if !within(path, modulePath) {
		return confined(room, path)
	}
	target := roomOf(path)
	switch {
	case target == "":
		return "it is in no room"
	case target == room, around(target) == room:
		return ""
	case around(target) != "":
		return "it is a room within " + around(target) + ", and that one's own"
	case slices.Contains(testsOnly, target) && !slices.Contains(testsOnly, room):
		return "it is for tests only"
	}
	if who, ok := onlyWired[target]; ok && !slices.Contains(who, room) {
		return "only " + strings.Join(who, ", ") + " may"
	}
	return notInTable(room, target)
}

func notInTable(room, target string) string {
	isLeaf := slices.Contains(leaves, room)
	if slices.Contains(leaves, target) && !isLeaf {
		return ""
	}
	if allowed := rooms[room]; slices.Contains(allowed, target) || slices.Contains(allowed, anyRoom) {
		return ""
	}
	return "imports run one way, see the table in rooms_test.go"
}

// confined applies the rules for packages from outside. Programs for tests are free to use what they need.
func confined(room, path string) string {
	if slices.Contains(testsOnly, room) {
		return ""
	}
	for _, c := range confinements {
		if path != c.path && (c.exact || !within(path, c.path)) {
			continue
		}
		if c.only != nil && !slices.Contains(c.only, room) {
			return fmt.Sprintf("only %s may: %s", strings.Join(c.only, ", "), c.reason)
		}
		if slices.ContainsFunc(c.never, func(name string) bool { return name == anyRoom || within(room, name) }) {
			return c.reason
		}
	}
	return ""
}
