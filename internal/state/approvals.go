package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Approvals are the files that say which tools are approved, one for each server. They are apart from the rest of the state:
// whoever approves something does it while a proxy runs, so these files are not locked for one process but for the moment
// of a change. They are safe for concurrent use by any number of processes.
type Approvals struct{ dir string }

const (
	approvalsDir  = "approvals"
	approvalsLock = "lock"
	// maxApprovalsBytes bounds one file.
	maxApprovalsBytes = 256 << 20
	// approvalsPatience is how long a change waits for that of another process.
	approvalsPatience = 5 * time.Second
)

var errNowhere = errors.New("without a state directory no approvals can be kept")

// ApprovalsIn gives those of a state directory, which need not exist. An empty directory keeps nothing.
func ApprovalsIn(stateDir string) *Approvals {
	if stateDir == "" {
		return &Approvals{}
	}
	return &Approvals{dir: filepath.Join(stateDir, approvalsDir)}
}

// Make makes the directory, so that it can be watched, and gives it.
func (a *Approvals) Make() (dir string, err error) {
	if a.dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return "", fmt.Errorf("making the directory of approvals: %w", err)
	}
	return a.dir, nil
}

// Path is the file of a server. The name of a server may be anything, so its hash stands for it.
func (a *Approvals) Path(server string) string {
	sum := sha256.Sum256([]byte(server))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:16])+".json")
}

// ReadApprovals gives what is kept of a server; nothing where nothing is.
func (a *Approvals) ReadApprovals(server string) ([]byte, error) {
	if a.dir == "" {
		return nil, nil
	}
	f, err := os.Open(a.Path(server))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxApprovalsBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxApprovalsBytes:
		return nil, fmt.Errorf("%s is longer than %d bytes", f.Name(), maxApprovalsBytes)
	case len(b) == 0:
		return nil, fmt.Errorf("%s is empty", f.Name()) // not the same as nothing: something was there
	}
	return b, nil
}

// UpdateApprovals replaces what is kept of a server by what change makes of it; nobody else changes anything meanwhile.
func (a *Approvals) UpdateApprovals(server string, change func(now []byte) ([]byte, error)) error {
	if a.dir == "" {
		return errNowhere
	}
	if _, err := a.Make(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(a.dir, approvalsLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("opening the approvals: %w", err)
	}
	defer f.Close() // which gives the lock back
	if err := lockSoon(f); err != nil {
		return err
	}
	now, err := a.ReadApprovals(server)
	if err != nil {
		return err
	}
	b, err := change(now)
	if err != nil {
		return err
	}
	return replaceFile(a.Path(server), b)
}

// lockSoon takes a file for this process, and waits for another that has it for a moment.
func lockSoon(f *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), approvalsPatience)
	defer cancel()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		err := lock(f)
		if err == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return fmt.Errorf("another process holds the approvals: %w", err)
		}
	}
}
