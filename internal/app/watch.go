package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// watcher tells when the content of a file has changed. It watches directories, since editors put a new file in the place
// of the old one, and Kubernetes a new target in the place of a symbolic link on the way to it.
type watcher struct {
	path    string
	known   func(sum [sha256.Size]byte) bool
	changed chan<- struct{}
	log     *zap.Logger
	fs      *fsnotify.Watcher
}

const (
	// settleTime is how long nothing may happen before the file is looked at: writes come in pieces.
	settleTime = 150 * time.Millisecond
	// settleLimit is how long the looking may be put off by a directory that never rests.
	settleLimit = 2 * time.Second
)

func newWatcher(path string, known func([sha256.Size]byte) bool, changed chan<- struct{}, log *zap.Logger) (*watcher, error) {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", path, err)
	}
	w := &watcher{path: path, known: known, changed: changed, log: log, fs: fs}
	if err := w.watch(); err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	return w, nil
}

// watch adds the directories that matter now; those that are watched already stay so.
func (w *watcher) watch() error {
	for dir := range directories(w.path) {
		if err := w.fs.Add(dir); err != nil {
			return fmt.Errorf("watching %s: %w", dir, err)
		}
	}
	return nil
}

// directories are those in which something can be changed that the content under a path depends on: where the file is, and
// where the symbolic links on the way to it are.
func directories(path string) map[string]bool {
	out := map[string]bool{filepath.Dir(path): true}
	const most = 40 // links may lead in a circle
	for range most {
		next := ""
		for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
			target, err := os.Readlink(at)
			if err != nil {
				continue
			}
			out[filepath.Dir(at)] = true
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			next = filepath.Join(target, path[len(at):])
		}
		if next == "" {
			break
		}
		path = next
		out[filepath.Dir(path)] = true
	}
	return out
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) {
	defer w.fs.Close()
	look := time.NewTimer(0) // something may have happened since the file was read
	defer look.Stop()
	first := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if first.IsZero() {
				first = time.Now()
			}
			if time.Since(first) < settleLimit {
				look.Reset(settleTime)
			}
		case err, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			w.log.Warn("watching the configuration", zap.Error(err))
			look.Reset(settleTime) // events may have been lost
		case <-look.C:
			first = time.Time{}
			w.look()
		}
	}
}

// look tells of a content that is new. A file that is not there at the moment is about to come.
func (w *watcher) look() {
	_ = w.watch() // a directory that is missing is seen when it comes, in the one above that holds its link
	found, err := config.Find(config.Options{Path: w.path})
	if err != nil || w.known(sha256.Sum256(found.Text)) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
