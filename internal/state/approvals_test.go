package state

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

func TestChangesOfManyDoNotOverwriteEachOther(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			a := ApprovalsIn(dir) // each as another process would
			for range 5 {
				err := a.UpdateApprovals("../s", func(now []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(now))
					return []byte(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if b, err := ApprovalsIn(dir).ReadApprovals("../s"); err != nil || string(b) != "20" {
		t.Errorf("after 20 changes there is %q (%v)", b, err)
	}
	if b, err := ApprovalsIn(dir).ReadApprovals("other"); err != nil || b != nil {
		t.Errorf("of another server there is %q (%v)", b, err)
	}
	info, err := os.Stat(ApprovalsIn(dir).Path("../s"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

func TestAnEmptyFileIsNotNothing(t *testing.T) {
	a := ApprovalsIn(t.TempDir())
	if _, err := a.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.Path("s"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := a.ReadApprovals("s"); err == nil {
		t.Errorf("an empty file gives %q", b)
	}
}

func TestWithoutADirectoryNoApprovalsAreKept(t *testing.T) {
	a := ApprovalsIn("")
	if b, err := a.ReadApprovals("s"); b != nil || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if a.UpdateApprovals("s", func([]byte) ([]byte, error) { return []byte("x"), nil }) == nil {
		t.Error("a change is said to be kept")
	}
	if dir, err := a.Make(); dir != "" || err != nil {
		t.Errorf("%q, %v", dir, err)
	}
}

func TestApprovalsNeedNoLockOfTheStore(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if err := ApprovalsIn(dir).UpdateApprovals("s", func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(ApprovalsIn(dir).Path("s")); !bytes.Equal(b, []byte("x")) {
		t.Errorf("%q in %s", b, filepath.Dir(ApprovalsIn(dir).Path("s")))
	}
}
