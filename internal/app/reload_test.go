package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcp-proxy/mcp-proxy/internal/clients"
	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/demo"
)

// reloadable is an App whose next configuration the test sets.
type reloadable struct {
	*App
	t     *testing.T
	base  Options
	loads atomic.Int64
	mu    sync.Mutex
	next  func() *config.Loaded
}

// servers gives the options' configuration with only these of its servers, changed as wanted.
func (r *reloadable) servers(change func(*config.Config), ids ...string) *config.Loaded {
	c := *r.base.Config
	c.Servers = nil
	for _, id := range ids {
		for _, s := range r.base.Config.Servers {
			if s.ID == id {
				one := *s
				c.Servers = append(c.Servers, &one)
			}
		}
	}
	if change != nil {
		change(&c)
	}
	return &config.Loaded{Config: &c}
}

func (r *reloadable) set(l *config.Loaded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = func() *config.Loaded { return l }
}

func (r *reloadable) to(l *config.Loaded) error {
	r.set(l)
	return r.Reload(r.t.Context())
}

func startReloadable(t *testing.T, servers map[string]*mcp.Server) *reloadable {
	t.Helper()
	r := &reloadable{t: t, base: options(t, ``, servers)}
	o := r.base
	o.Source = &Source{Load: func() *config.Loaded {
		r.loads.Add(1)
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.next()
	}}
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.App = a
	a.Start()
	t.Cleanup(func() { _ = a.Stop() })
	a.WaitListed(t.Context())
	return r
}

func (r *reloadable) find(id string) error {
	_, err := (&clients.Caller{URL: r.URL()}).Call(r.t.Context(), id+"__find", []byte(`{}`))
	return err
}

func TestAReloadKeepsWhatHasNotChanged(t *testing.T) {
	r := startReloadable(t, map[string]*mcp.Server{"a": demo.Notes("1"), "b": demo.Notes("1"), "c": demo.Notes("1")})
	a, b, c := r.ups.Get("a"), r.ups.Get("b"), r.ups.Get("c")
	if err := r.to(r.servers(func(cfg *config.Config) { cfg.Servers[1].CallTimeout++ }, "a", "c")); err != nil {
		t.Fatal(err)
	}
	if r.ups.Get("a") != a || r.ups.Get("b") != nil || r.ups.Get("c") == c || b == nil {
		t.Error("another upstream than the changed and the removed one is affected")
	}
	for _, id := range []string{"a", "c"} {
		if err := r.find(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := r.find("b"); err == nil {
		t.Error("a server that was removed is called")
	}
}

func TestARejectedReloadSaysWhy(t *testing.T) {
	r := startReloadable(t, map[string]*mcp.Server{"a": demo.Notes("1")})
	before := r.config()
	fatal := r.servers(nil, "a")
	fatal.Problems = []config.Problem{{Severity: config.SeverityError, Path: "proxy.x", Msg: "is wrong", Stops: true}, {Severity: config.SeverityError, Server: "a", Msg: "is bad"}}
	for want, l := range map[string]*config.Loaded{
		"proxy.x: is wrong\nis bad":                                    fatal,
		"proxy.listen: a running proxy cannot change this; restart it": r.servers(func(c *config.Config) { c.Proxy.Listen = "127.0.0.1:1" }, "a"),
		"proxy.sessions.keys: a running proxy cannot change this; restart it": r.servers(func(c *config.Config) {
			c.Proxy.Sessions.Keys = []config.Secret{"k"}
		}, "a"),
	} {
		if err := r.to(l); err == nil || err.Error() != want {
			t.Errorf("Reload gives %v, want %s", err, want)
		}
		if st := r.Status().Reload; st == nil || st.Successful || strings.Join(st.Problems, "\n") != want {
			t.Errorf("the status says %+v", st)
		}
		if v := testutil.ToFloat64(r.reload.metrics.successful); v != 0 || r.config() != before {
			t.Errorf("the metric is %v", v)
		}
	}
	// A server that is new may be wrong, as at a start.
	lenient := r.servers(nil, "a")
	lenient.Problems = []config.Problem{{Severity: config.SeverityError, Server: "new", Msg: "is bad"}}
	if err := r.to(lenient); err != nil || testutil.ToFloat64(r.reload.metrics.successful) != 1 {
		t.Errorf("Reload gives %v", err)
	}
}

// However many want a reload at a time, each is answered by an attempt that began after its wish.
func TestReloadsAreGathered(t *testing.T) {
	r := startReloadable(t, map[string]*mcp.Server{"a": demo.Notes("1")})
	begun, goOn := make(chan struct{}), make(chan struct{})
	l := r.servers(nil, "a")
	var first sync.Once
	r.mu.Lock()
	r.next = func() *config.Loaded {
		first.Do(func() { close(begun); <-goOn })
		return l
	}
	r.mu.Unlock()
	errs := make(chan error, 100)
	go func() { errs <- r.Reload(t.Context()) }()
	<-begun
	for range 99 {
		done := make(chan error, 1)
		if !r.reload.want(done) {
			t.Fatal("a wish is refused")
		}
		go func() { errs <- <-done }()
	}
	close(goOn)
	for range 100 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := r.loads.Load(); n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

func TestNoReloadDuringTheEnd(t *testing.T) {
	r := startReloadable(t, map[string]*mcp.Server{"a": demo.Notes("1")})
	r.set(r.servers(nil, "a"))
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(t.Context()); !errors.Is(err, errStopping) || r.loads.Load() != 0 {
		t.Errorf("Reload gives %v after %d attempts", err, r.loads.Load())
	}
}

// A server that hangs at its start is stopped when a reload removes it.
func TestAServerIsRemovedWhileItStarts(t *testing.T) {
	r := startReloadable(t, map[string]*mcp.Server{"a": demo.Notes("1")})
	started, ended := make(chan struct{}), make(chan struct{})
	r.opt.InProcess["slow"] = func(ctx context.Context, _ io.ReadWriteCloser) error {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil
	}
	with := r.servers(nil, "a")
	slow := *with.Config.Servers[0]
	slow.ID = "slow"
	with.Config.Servers = append(with.Config.Servers, &slow)
	if err := r.to(with); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := r.to(r.servers(nil, "a")); err != nil {
		t.Fatal(err)
	}
	<-ended
	eventually(t, "end of its series", func() bool {
		families, err := r.registry.Gather()
		return err == nil && !strings.Contains(fmt.Sprint(families), `value:"slow"`)
	})
}

func TestTheWatcherTellsOfNewContentOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "c.json")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	var known atomic.Pointer[[sha256.Size]byte]
	sum := sha256.Sum256([]byte("one"))
	known.Store(&sum)
	asked, changed := make(chan [sha256.Size]byte, 100), make(chan struct{}, 1)
	w, err := newWatcher(path, func(s [sha256.Size]byte) bool { asked <- s; return s == *known.Load() }, changed, options(t, ``, nil).Log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.run(ctx); close(done) }()
	<-asked // at the beginning
	write("one")
	if got := <-asked; got != sum || len(changed) > 0 {
		t.Error("the same content is told of")
	}
	write("two")
	<-changed
	cancel()
	<-done
	if _, err := newWatcher(filepath.Join(dir, "missing", "c.json"), nil, nil, nil); err == nil {
		t.Error("a directory that is not there is watched")
	}
}

func TestTheDirectoriesOfALinkedFile(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "etc"), 0o700))
	must(os.MkdirAll(filepath.Join(dir, "data", "v1"), 0o700))
	must(os.Symlink("../data/current/c.json", filepath.Join(dir, "etc", "c.json")))
	must(os.Symlink("v1", filepath.Join(dir, "data", "current")))
	must(os.WriteFile(filepath.Join(dir, "data", "v1", "c.json"), nil, 0o600))
	got := directories(filepath.Join(dir, "etc", "c.json"))
	for _, want := range []string{"etc", "data", "data/v1"} {
		if !got[filepath.Join(dir, want)] {
			t.Errorf("%s is not among %v", want, got)
		}
	}
	must(os.Symlink("b", filepath.Join(dir, "a")))
	must(os.Symlink("a", filepath.Join(dir, "b")))
	if got := directories(filepath.Join(dir, "a")); !got[dir] {
		t.Errorf("a circle gives %v", got)
	}
}
