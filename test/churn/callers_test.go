package churn

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

const (
	callers = 50
	// pause is what a caller waits after an answer, so that the load is steady and leaves room for the servers.
	pause = 100 * time.Millisecond
)

// tally is what came of the calls.
type tally struct {
	mu       sync.Mutex
	good     map[fate]int
	faults   map[fate]map[string]int // by reason
	wrong    []string                // what must never happen
	calmTook []time.Duration
}

func newTally() *tally { return &tally{good: map[fate]int{}, faults: map[fate]map[string]int{}} }

func (y *tally) wrongly(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.wrong = append(y.wrong, fmt.Sprintf(format, args...))
}

func (y *tally) ok(u *upstream, took time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.good[u.fate]++
	if u.fate == calm {
		y.calmTook = append(y.calmTook, took)
	}
}

func (y *tally) fault(u *upstream, reason string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.faults[u.fate] == nil {
		y.faults[u.fate] = map[string]int{}
	}
	y.faults[u.fate][reason]++
}

// p99 is that of the calls to servers to which nothing happened.
func (y *tally) p99() time.Duration {
	slices.Sort(y.calmTook)
	if len(y.calmTook) == 0 {
		return 0
	}
	return y.calmTook[len(y.calmTook)*99/100]
}

// judge notes what came of a call that should have given this text. An error must name the server; only one that the
// configuration may have taken away may be unknown.
func (y *tally) judge(u *upstream, a testmcp.Answer, want string) {
	fault := a.Err()
	message := fault.At("message").Str()
	switch {
	case a.Result() == nil && fault == nil:
		y.wrongly("a call of %s has no answer: HTTP %d, %v %s", u.name, a.Status, a.Error, a.Body)
	case a.Result() != nil && a.Text() != want:
		y.wrongly("a call of %s is answered %s, want %q", u.name, a.Raw, want)
	case a.Result() != nil:
		y.ok(u, a.Took)
	case u.fate == calm:
		y.wrongly("a call of %s fails, to which nothing happened: %s", u.name, a.Raw)
	case u.fate == swapped && a.Code() == -32602 && strings.HasPrefix(message, "unknown tool: "+u.name+"__"):
		y.fault(u, "unknown")
	case !strings.HasPrefix(message, u.name+"::") || fault.At("data", "upstream").Str() != u.name || fault.At("data", "reason").Str() == "":
		y.wrongly("an error of %s does not name it: %s", u.name, a.Raw)
	default:
		y.fault(u, fault.At("data", "reason").Str())
	}
}

// caller is one client that calls on and on.
type caller struct {
	n      int
	c      *testmcp.Client
	y      *tally
	random *rand.Rand
	from   []*upstream
}

// crowd lets clients of both eras call until stop is closed, and gives what came of it. The sessions are ended.
func crowd(t *testing.T, p *testmcp.Proxy, f *fleet, seed uint64, stop <-chan struct{}) *tally {
	t.Helper()
	y := newTally()
	var wg sync.WaitGroup
	for n := range callers {
		era := testmcp.Legacy
		if n%2 == 1 {
			era = testmcp.Modern
		}
		k := &caller{n: n, c: p.Client(era), y: y, random: rand.New(rand.NewPCG(seed, uint64(n))), from: f.all}
		if n%10 > 1 { // only some have connections of their own
			k.from = slices.DeleteFunc(slices.Clone(f.all), func(u *upstream) bool { return u.own })
		}
		wg.Go(func() { k.run(stop) })
	}
	wg.Wait()
	return y
}

func (k *caller) run(stop <-chan struct{}) {
	defer k.end()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := 0; ; i++ {
		k.act(i)
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

func (k *caller) end() {
	if k.c.Era == testmcp.Legacy {
		if code := k.c.Delete(); code >= http.StatusMultipleChoices {
			k.y.wrongly("DELETE of a session gives HTTP %d", code)
		}
	}
	k.c.Reconnect()
}

// act does one of the things that clients do.
func (k *caller) act(i int) {
	u := k.from[k.random.IntN(len(k.from))]
	switch n := k.random.IntN(100); {
	case n < 5:
		k.list()
	case n < 10:
		k.giveUp(u)
	case n < 25:
		k.y.judge(u, k.c.Try("tools/call", withToken(u.name+"__progress", `{"steps":3}`, i)), "3 steps")
	default:
		secret := fmt.Sprintf("%d of caller %d, %d", i, k.n, k.random.Int())
		k.y.judge(u, k.c.Try("tools/call", testmcp.ToolParams(u.name+"__echo", `{"text":`+testmcp.Quote(secret)+`}`)), secret)
	}
}

func withToken(name, arguments string, token int) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}`, name, arguments, token)
}

// list fetches the tools, which come from memory whatever happens to the servers.
func (k *caller) list() {
	if a := k.c.Try("tools/list", "{}"); len(a.Result().At("tools").Items()) == 0 {
		k.y.wrongly("tools/list: HTTP %d, %v %s", a.Status, a.Error, a.Body)
	}
}

// giveUp starts a call that would never end and cancels it, or just goes away.
func (k *caller) giveUp(u *upstream) {
	s := k.c.Start("tools/call", testmcp.ToolParams(u.name+"__hang", "{}"))
	if k.random.IntN(2) == 0 {
		k.c.Cancel(s)
	}
	s.Close()
}
