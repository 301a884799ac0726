package state

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// Records of child processes stand in files of their own, one for each: written at once when the process has been
// started, and without a sync, since no process outlives what a sync protects against.
const (
	childrenDir = "children"
	// maxChildren bounds how many records are read, maxChildBytes how long one may be.
	maxChildren   = 10_000
	maxChildBytes = 4096
)

// KeepChild keeps what is needed to find a child process after this process.
func (s *Store) KeepChild(pid int, record []byte) error {
	if s.dir == "" {
		return nil
	}
	dir := filepath.Join(s.dir, childrenDir)
	path := filepath.Join(dir, strconv.Itoa(pid))
	err := os.WriteFile(path, record, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Mkdir(dir, 0o700); err == nil || errors.Is(err, os.ErrExist) {
			err = os.WriteFile(path, record, 0o600)
		}
	}
	return err
}

// DropChild forgets a child process that has ended.
func (s *Store) DropChild(pid int) {
	if s.dir != "" {
		_ = os.Remove(filepath.Join(s.dir, childrenDir, strconv.Itoa(pid)))
	}
}

// Children gives the records of child processes that the process before this one did not live to drop. The caller must
// expect any bytes.
func (s *Store) Children() map[int][]byte {
	out := map[int][]byte{}
	if s.dir == "" {
		return out
	}
	d, err := os.Open(filepath.Join(s.dir, childrenDir))
	if err != nil {
		return out
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxChildren)
	for _, name := range names {
		path := filepath.Join(d.Name(), name)
		pid, err := strconv.Atoi(name)
		b, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || len(b) > maxChildBytes {
			_ = os.Remove(path)
			continue
		}
		out[pid] = b
	}
	return out
}
