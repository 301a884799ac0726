package testmcp

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long the kit waits for anything that a test expects.
var Patience = 20 * time.Second

var selfPID = os.Getpid()

// Recorder collects what one upstream saw, however it is served and however often it is started. At the test's
// end it fails the test for each breach of the protocol by the client, unless allowed. All methods may be used
// from several goroutines.
type Recorder struct {
	t      testing.TB
	path   string // of the socket that children report to
	ln     net.Listener
	wg     sync.WaitGroup
	checks *checker

	mu      sync.Mutex
	all     []Record
	changed chan struct{} // closed and replaced with every record
	signals map[string]chan struct{}
	links   map[*link]bool
	allowed map[string]bool
	live    map[int]bool
}

// NewRecorder makes a recorder that lives as long as the test.
func NewRecorder(t testing.TB) *Recorder {
	t.Helper()
	// The directory is not t.TempDir: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := &Recorder{t: t, path: path, ln: ln, checks: newChecker(), changed: make(chan struct{}),
		signals: map[string]chan struct{}{}, links: map[*link]bool{}, allowed: map[string]bool{}, live: map[int]bool{}}
	r.wg.Go(r.accept)
	t.Cleanup(func() { r.close(dir) })
	return r
}

func (r *Recorder) close(dir string) {
	_ = r.ln.Close()
	r.mu.Lock()
	for l := range r.links {
		_ = l.conn.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	_ = os.RemoveAll(dir)
	for _, v := range r.Violations() {
		r.t.Errorf("the client broke the protocol: %s", v)
	}
	if r.t.Failed() {
		r.t.Logf("the upstream saw:\n%s", r.Dump(60))
	}
}

// record implements sink for servers in the test's own process.
func (r *Recorder) record(rec Record) { r.add(rec, rec.answer) }

func (r *Recorder) add(rec Record, answer bool) {
	rec.answer = answer
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rec)
	r.checks.see(rec)
	switch rec.Kind {
	case Start:
		r.live[rec.PID] = true
	case Exit:
		delete(r.live, rec.PID)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Recorder) signal(name string) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signalLocked(name)
}

func (r *Recorder) signalLocked(name string) chan struct{} {
	if r.signals[name] == nil {
		r.signals[name] = make(chan struct{})
	}
	return r.signals[name]
}

// Signal lets everything go on that waits for this name, now or later, in children too.
func (r *Recorder) Signal(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := r.signalLocked(name)
	select {
	case <-ch:
		return
	default:
		close(ch)
	}
	for l := range r.links {
		l.send(signalLine + name)
	}
}

// Allow tells that a breach of this name is wanted in this test. The names are those of check.go.
func (r *Recorder) Allow(names ...string) *Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		r.allowed[n] = true
	}
	return r
}

// Violations gives the breaches of the protocol seen so far that are not allowed, each with its name in front.
func (r *Recorder) Violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, v := range r.checks.found {
		if name, _, _ := strings.Cut(v, ":"); !r.allowed[name] {
			out = append(out, v)
		}
	}
	return out
}

// All gives the records so far.
func (r *Recorder) All() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// Find gives the records so far that match.
func (r *Recorder) Find(match func(Record) bool) []Record {
	var out []Record
	for _, rec := range r.All() {
		if match(rec) {
			out = append(out, rec)
		}
	}
	return out
}

// Count says how many records match so far.
func (r *Recorder) Count(match func(Record) bool) int { return len(r.Find(match)) }

// Live gives the pids of the children that have started and not ended.
func (r *Recorder) Live() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []int
	for pid := range r.live {
		if pid != selfPID {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// Wait waits for the first record that matches, past ones included, and fails the test if none comes.
func (r *Recorder) Wait(t testing.TB, match func(Record) bool) Record {
	t.Helper()
	return r.WaitN(t, 1, match)[0]
}

// WaitN waits until n records match and gives them.
func (r *Recorder) WaitN(t testing.TB, n int, match func(Record) bool) []Record {
	t.Helper()
	var found []Record
	r.WaitFor(t, fmt.Sprintf("%d matching records", n), func() bool {
		found = r.Find(match)
		return len(found) >= n
	})
	return found[:n]
}

// WaitFor waits until a condition over the record holds; it is asked again after every new record.
func (r *Recorder) WaitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("no %s within %v; the upstream saw:\n%s", what, Patience, r.Dump(40))
		}
	}
}

// WaitGone waits until no child of this upstream is alive.
func (r *Recorder) WaitGone(t testing.TB) {
	t.Helper()
	r.WaitFor(t, "end of all children", func() bool { return len(r.Live()) == 0 })
}

// Dump gives the last n records as text.
func (r *Recorder) Dump(n int) string {
	all := r.All()
	if len(all) > n {
		all = all[len(all)-n:]
	}
	lines := make([]string, len(all))
	for i, rec := range all {
		lines[i] = rec.String()
	}
	return strings.Join(lines, "\n")
}

// discard is the sink of a server that nobody watches.
type discard struct{}

func (discard) record(Record)                 {}
func (discard) signal(string) <-chan struct{} { return nil }
