package state

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestChildrenAreKeptUntilTheyAreDropped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for pid, text := range map[int]string{7: "seven", 8: "eight"} {
		if err := s.KeepChild(pid, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.DropChild(7)
	s.DropChild(9) // never was
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	next := open(t, dir)
	if got := next.Children(); len(got) != 1 || string(got[8]) != "eight" {
		t.Errorf("kept are %v", got)
	}
	next.DropChild(8)
	if got := next.Children(); len(got) != 0 {
		t.Errorf("kept are %v", got)
	}
}

// What is no record is no reason to signal anybody, and goes.
func TestForeignFilesAmongTheChildren(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if got := s.Children(); len(got) != 0 {
		t.Errorf("kept are %v", got)
	}
	if err := s.KeepChild(5, bytes.Repeat([]byte("x"), maxChildBytes+1)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, childrenDir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.Children(); len(got) != 0 {
		t.Errorf("kept are %v", got)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, childrenDir)); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

func TestWithoutADirectoryNoChildIsKept(t *testing.T) {
	s := open(t, "")
	if err := s.KeepChild(5, []byte("x")); err != nil || len(s.Children()) != 0 {
		t.Errorf("%v, %v", err, s.Children())
	}
}
