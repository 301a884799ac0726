package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/pins"
	"github.com/mcp-proxy/mcp-proxy/internal/state"
)

// approvals are those of the state directory.
func (a *App) approvals() *pins.Store {
	dir := a.config().Proxy.StateDir
	if dir == "" {
		return pins.New(nil, true)
	}
	return pins.New(state.ApprovalsIn(dir), a.opt.forgets() && !a.opt.Review)
}

// Unapproved tells how many tools of pinned servers are withheld because nobody has approved them.
func (a *App) Unapproved() (n int) {
	for _, one := range a.proxy.Unapproved() {
		n += one
	}
	return n
}

// approvalsWatch notices that somebody approves tools while the proxy runs. It is used by one goroutine at a time.
type approvalsWatch struct {
	cancel context.CancelFunc // nil where nothing is watched
	runs   sync.WaitGroup
}

func (w *approvalsWatch) stop() {
	if w.cancel != nil {
		w.cancel()
		w.runs.Wait()
	}
}

const (
	// approvalsSettle gathers changes that come together.
	approvalsSettle = 20 * time.Millisecond
	// approvalsPoll is how often one looks where nothing tells of a change.
	approvalsPoll = 5 * time.Second
)

// watchApprovals begins to watch, once there is a pinned server.
func (a *App) watchApprovals() {
	cfg := a.config()
	pinned := func(s *config.Server) bool { return s.Pinned() }
	if a.pinned.cancel != nil || a.opt.forgets() || cfg.Proxy.StateDir == "" || !slices.ContainsFunc(cfg.Servers, pinned) {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.pinned.cancel = cancel
	fs, err := watchDirectory(cfg.Proxy.StateDir)
	if err != nil {
		a.log.Warn("approvals are looked for from time to time, since their directory cannot be watched", zap.Error(err))
		fs = &fsnotify.Watcher{} // which tells nothing
	}
	a.pinned.runs.Go(func() {
		if err == nil {
			defer fs.Close()
		}
		a.reapprove(ctx, fs)
	})
}

// watchDirectory tells when something changes in the directory of approvals.
func watchDirectory(stateDir string) (*fsnotify.Watcher, error) {
	dir, err := state.ApprovalsIn(stateDir).Make()
	if err != nil {
		return nil, err
	}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	if err := fs.Add(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("watching %s: %w", dir, err), fs.Close())
	}
	return fs, nil
}

// reapprove takes over what others approve, until ctx ends. It also looks from time to time: events may be lost.
func (a *App) reapprove(ctx context.Context, fs *fsnotify.Watcher) {
	look := time.NewTimer(0) // something may have happened since the records were read
	defer look.Stop()
	soon := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-fs.Events:
		case err := <-fs.Errors:
			a.log.Warn("watching the approvals", zap.Error(err))
		case <-look.C:
			a.proxy.Reapprove()
			look.Reset(approvalsPoll)
			soon = false
			continue
		}
		if !soon {
			look.Reset(approvalsSettle)
			soon = true
		}
	}
}
