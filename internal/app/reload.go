package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/httpd"
)

// Source is where a configuration comes from.
type Source struct {
	// Load reads the configuration anew.
	Load func() *config.Loaded
	// Path is the file that is watched for changes, and Sum what is known of its content; an empty path watches nothing.
	Path string
	Sum  [sha256.Size]byte
	// Hangup brings the signal to load the configuration anew; nil where there is none.
	Hangup <-chan os.Signal
}

// errStopping answers those who want a reload while the proxy ends.
var errStopping = errors.New("the proxy is stopping")

// problemsError is why a configuration was rejected, all mistakes at once.
type problemsError []string

func (e problemsError) Error() string { return strings.Join(e, "\n") }

// reloader loads the configuration anew, one attempt after the other, whoever wants it. Wishes that come while an attempt
// is made are all answered by the next one.
type reloader struct {
	app     *App
	log     *zap.Logger
	metrics *metrics
	kick    chan struct{} // holds one token while somebody waits
	runs    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	closed  bool
	waiting []chan<- error
	last    *httpd.Reload
	sum     [sha256.Size]byte // of the text that was read last
}

func newReloader(a *App, m *metrics) *reloader {
	r := &reloader{app: a, log: a.log.Named("config"), metrics: m, kick: make(chan struct{}, 1)}
	if s := a.opt.Source; s != nil {
		r.sum = s.Sum
	}
	return r
}

// Reload loads the configuration anew and returns when that is done, or why it was rejected.
func (a *App) Reload(ctx context.Context) error {
	done := make(chan error, 1)
	if !a.reload.want(done) {
		return errStopping
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *reloader) want(done chan<- error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.waiting = append(r.waiting, done)
	select {
	case r.kick <- struct{}{}:
	default:
	}
	return true
}

// start begins to hear signals, changes of the file, and calls of Reload.
func (r *reloader) start(s *Source) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	if s.Path != "" {
		if w, err := newWatcher(s.Path, r.known, changed, r.log); err != nil {
			r.log.Warn("the configuration is not watched for changes; SIGHUP and POST /-/reload load it anew", zap.Error(err))
		} else {
			r.runs.Go(func() { w.run(ctx) })
		}
	}
	r.runs.Go(func() { r.run(ctx, s, changed) })
	return func() {
		cancel()
		r.runs.Wait()
	}
}

// run makes the attempts. One that has begun when ctx ends is finished.
func (r *reloader) run(ctx context.Context, s *Source, changed <-chan struct{}) {
	defer r.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Hangup:
		case <-changed:
		case <-r.kick:
		}
		if ctx.Err() != nil {
			return
		}
		waiting := r.take()
		err := r.attempt(s)
		for _, done := range waiting {
			done <- err
		}
	}
}

func (r *reloader) take() []chan<- error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.waiting
	r.waiting = nil
	return all
}

// close refuses those who still wait.
func (r *reloader) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, done := range r.take() {
		done <- errStopping
	}
}

// attempt loads the configuration and puts it in force, or leaves everything as it is.
func (r *reloader) attempt(s *Source) error {
	loaded := s.Load()
	err := r.acceptable(loaded)
	if err == nil {
		err = r.app.apply(loaded.Config)
	}
	r.note(loaded, err)
	if err == nil {
		Report(r.log, loaded)
		return nil
	}
	var problems problemsError
	if !errors.As(err, &problems) {
		problems = problemsError{err.Error()}
	}
	r.log.Error("the new configuration is rejected; the one before goes on", zap.Strings("problems", problems))
	return err
}

// acceptable says why a configuration cannot be put in force. A mistake in one server is one only where it would take away
// a server that works: one that is new is served as at a start, with its reason.
func (r *reloader) acceptable(l *config.Loaded) error {
	works := map[string]bool{}
	for _, s := range r.app.config().Servers {
		works[s.ID] = s.Problem == nil && !s.Disabled
	}
	var bad problemsError
	for _, p := range l.Errors() {
		if p.Stops || works[p.Server] {
			bad = append(bad, p.String())
		}
	}
	if len(bad) > 0 {
		return bad
	}
	return nil
}

// note keeps how an attempt went, for the status and the metrics.
func (r *reloader) note(l *config.Loaded, err error) {
	last := &httpd.Reload{At: time.Now(), Successful: err == nil}
	var problems problemsError
	if errors.As(err, &problems) {
		last.Problems = problems
	} else if err != nil {
		last.Problems = []string{err.Error()}
	}
	r.mu.Lock()
	r.last, r.sum = last, l.Sum
	r.mu.Unlock()
	r.metrics.loaded(err == nil)
}

// known says whether this is the text that was read last.
func (r *reloader) known(sum [sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sum == sum
}

// status is how the last attempt went; nil before the first.
func (r *reloader) status() *httpd.Reload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Report logs what is not fatal: mistakes of single servers, advice, and keys that were read in another way.
func Report(log *zap.Logger, l *config.Loaded) {
	for _, p := range l.Errors() {
		log.Error("a server is not used", zap.String("upstream", p.Server), zap.String("problem", p.String()))
	}
	for _, p := range l.Warnings() {
		log.Warn("advice on the configuration", zap.String("problem", p.String()))
	}
	for _, n := range l.Notes {
		log.Info("a key of the configuration", zap.String("note", n.String()))
	}
}
