package churn

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// fate is what happens to a server.
type fate string

const (
	calm     fate = "calm"     // nothing; its calls must not notice what happens to the others
	killed   fate = "killed"   // SIGKILL in the middle of whatever it does
	frozen   fate = "frozen"   // SIGSTOP, and later SIGCONT or SIGKILL
	swapped  fate = "swapped"  // the configuration changes it, or takes it away for a while
	crashing fate = "crashing" // stops listening, breaks streams, forgets sessions
	hanging  fate = "hanging"  // takes requests and answers none
)

// upstream is one server of the fleet, a child or an HTTP server.
type upstream struct {
	name  string
	fate  fate
	rec   *testmcp.Recorder
	web   *testmcp.HTTPServer // nil for a child
	entry func(version int) string
	hangs atomic.Bool // an HTTP server answers nothing
	own   bool        // each session has a connection of its own, so few clients may use it
}

type fleet struct {
	all   []*upstream
	close atomic.Bool // HTTP servers close the connection after each answer, so that none are idle
}

// restart lets everything come back soon.
const restart = `"restart":{"initial_delay":"100ms","max_delay":"1s"}`

var _ = testmcp.Register("churn", func(args []string) *testmcp.Server {
	era, err := strconv.Atoi(args[1])
	if err != nil {
		panic(err)
	}
	return serverOf(args[0], testmcp.Era(era))
})

func serverOf(name string, era testmcp.Era) *testmcp.Server {
	s := testmcp.Basic(name)
	s.Quiet, s.Era = true, era
	return s
}

// newFleet makes thirty children and ten HTTP servers, of all eras and ways of sharing.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{}
	for i := range 10 {
		f.child(t, calm, i, "")
	}
	ways := []string{"", "", `"instances":2`, "shells", "shells", `"sharing":"session"`, `"sharing":"call","instances":3,"idle_stop":"1s"`, "", "", ""}
	for i, way := range ways {
		f.child(t, killed, i, way)
	}
	for i := range 5 {
		f.child(t, frozen, i, "")
		f.child(t, swapped, i, "")
	}
	for i := range 3 {
		f.web(t, calm, i)
		f.web(t, crashing, i)
	}
	f.web(t, hanging, 0)
	f.web(t, hanging, 1)
	f.web(t, swapped, 8)
	f.sse(t, crashing, 9)
	return f
}

// settings are those of the entry of a server.
func settings(kind fate, more string) []string {
	out := []string{restart}
	if kind != calm {
		out = append(out, `"call_timeout":"1s"`)
	}
	if more != "" {
		out = append(out, more)
	}
	return out
}

// child adds a server that is a process. Way holds further settings, or says that it runs below shells.
func (f *fleet) child(t *testing.T, kind fate, i int, way string) {
	t.Helper()
	u := &upstream{fate: kind, name: fmt.Sprintf("%s-child-%d", kind, i), rec: testmcp.NewRecorder(t), own: way == `"sharing":"session"`}
	args := []string{u.name, strconv.Itoa(i % 3)}
	u.entry = func(version int) string {
		args := append(slices.Clone(args), strconv.Itoa(version))
		if way == "shells" {
			return u.rec.EntryVia(testmcp.BelowShells, "churn", args, settings(kind, "")...)
		}
		return u.rec.Entry("churn", args, settings(kind, way)...)
	}
	f.all = append(f.all, u)
}

func (f *fleet) web(t *testing.T, kind fate, i int) {
	t.Helper()
	u := &upstream{fate: kind, name: fmt.Sprintf("%s-web-%d", kind, i), rec: testmcp.NewRecorder(t)}
	u.web = testmcp.ServeHTTP(t, serverOf(u.name, testmcp.Era(i%3)), testmcp.HTTPOptions{Recorder: u.rec, Before: f.before(u)})
	f.addWeb(u)
}

// sse adds a server of the older transport.
func (f *fleet) sse(t *testing.T, kind fate, i int) {
	t.Helper()
	u := &upstream{fate: kind, name: fmt.Sprintf("%s-sse-%d", kind, i), rec: testmcp.NewRecorder(t)}
	u.web = testmcp.ServeSSE(t, serverOf(u.name, testmcp.Legacy), testmcp.SSEOptions{Recorder: u.rec, Before: f.before(u)})
	f.addWeb(u, `"type":"sse"`)
}

func (f *fleet) addWeb(u *upstream, more ...string) {
	u.entry = func(version int) string {
		return u.web.Entry(append(settings(u.fate, fmt.Sprintf(`"headers":{"X-Version":"%d"}`, version)), more...)...)
	}
	f.all = append(f.all, u)
}

// before lets an HTTP server hang.
func (f *fleet) before(u *upstream) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if f.close.Load() {
			w.Header().Set("Connection", "close")
		}
		if !u.hangs.Load() || r.Method != http.MethodPost {
			return false
		}
		<-r.Context().Done()
		return true
	}
}

// of gives the servers of this fate.
func (f *fleet) of(kind fate) []*upstream {
	return slices.DeleteFunc(slices.Clone(f.all), func(u *upstream) bool { return u.fate != kind })
}

// config gives the configuration with every server as version 0, but as the two functions say for those that are swapped.
func (f *fleet) config(present func(*upstream) bool, version func(*upstream) int) string {
	entries := map[string]string{}
	for _, u := range f.all {
		switch {
		case u.fate != swapped:
			entries[u.name] = u.entry(0)
		case present(u):
			entries[u.name] = u.entry(version(u))
		}
	}
	return testmcp.Config(`{"stream_after":"100ms","keep_alive":"1s","sessions":{"resume_window":"1s"},"shutdown_grace":"3s"}`, entries)
}

func (f *fleet) plain() string {
	return f.config(func(*upstream) bool { return true }, func(*upstream) int { return 0 })
}
