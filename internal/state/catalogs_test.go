package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestACatalogOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := []byte(`{"a":"<b>"}`)
	if err := s.SetCatalog("abc", want); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got := s.Catalog("abc"); !bytes.Equal(got, want) {
		t.Errorf("what is kept is %q", got)
	}
	if got := s.Catalog("other"); got != nil {
		t.Errorf("under another key there is %q", got)
	}
}

func TestKeysOfCatalogsCannotLeaveTheDirectory(t *testing.T) {
	s := open(t, t.TempDir())
	for _, key := range []string{"", "../x", "a/b", "A", "a.b"} {
		if err := s.SetCatalog(key, []byte("{}")); err == nil {
			t.Errorf("%q is taken for a key", key)
		}
		if s.Catalog(key) != nil {
			t.Errorf("%q leads to something", key)
		}
	}
}

func TestCatalogsAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.SetCatalog("a", make([]byte, maxCatalogBytes+1)); !errors.Is(err, ErrCatalogTooLong) {
		t.Errorf("a long catalog: %v", err)
	}
	if err := os.WriteFile(s.catalogPath("long"), make([]byte, maxCatalogBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Catalog("long") != nil {
		t.Error("a file that is too long is read")
	}
	began := time.Now().Add(-time.Hour)
	for i := range maxCatalogs {
		name := s.catalogPath(fmt.Sprintf("n%d", i))
		if err := os.WriteFile(name, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := began.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"new", "newer", "newer"} {
		if err := s.SetCatalog(key, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if all, _ := filepath.Glob(s.catalogPath("*")); len(all) != maxCatalogs {
		t.Errorf("%d catalogs are kept", len(all))
	}
	if s.Catalog("n0") != nil || s.Catalog(fmt.Sprintf("n%d", maxCatalogs-1)) == nil || s.Catalog("newer") == nil {
		t.Error("others than the oldest were removed")
	}
}

func TestWithoutADirectoryNoCatalogIsKept(t *testing.T) {
	s := open(t, "")
	if err := s.SetCatalog("a", []byte("{}")); err != nil || s.Catalog("a") != nil {
		t.Errorf("%v, %q", err, s.Catalog("a"))
	}
}
