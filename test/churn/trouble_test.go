package churn

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// trouble does things to servers, one after the other, and undoes later what can be undone.
type trouble struct {
	t      *testing.T
	p      *testmcp.Proxy
	f      *fleet
	random *rand.Rand
	later  []undoing
	busy   map[*upstream]bool // something waits to be undone
	did    map[string]int
}

type undoing struct {
	at time.Time
	do func()
}

func newTrouble(t *testing.T, p *testmcp.Proxy, f *fleet, seed uint64) *trouble {
	return &trouble{t: t, p: p, f: f, random: rand.New(rand.NewPCG(seed, seed)), busy: map[*upstream]bool{}, did: map[string]int{}}
}

// make goes on for this time; then everything is put back.
func (b *trouble) make(long time.Duration) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(long); time.Now().Before(end); <-tick.C {
		b.undo(time.Now())
		if b.random.IntN(6) == 0 { // about every 300 ms
			b.one()
		}
	}
	b.undo(time.Now().Add(time.Hour))
	b.p.WriteConfig(b.f.plain())
	b.p.Reload()
}

// undo does what is due.
func (b *trouble) undo(now time.Time) {
	var rest []undoing
	for _, u := range b.later {
		if u.at.After(now) {
			rest = append(rest, u)
			continue
		}
		u.do()
	}
	b.later = rest
}

func (b *trouble) one() {
	switch b.random.IntN(10) {
	case 0, 1, 2, 3:
		b.kill(b.pick(killed))
	case 4, 5:
		b.freeze(b.pick(frozen))
	case 6:
		b.crash(b.pick(crashing))
	case 7:
		b.hang(b.pick(hanging))
	default:
		b.reload()
	}
}

// pick gives a server of this fate with which nothing is the matter at the moment, or nil.
func (b *trouble) pick(kind fate) *upstream {
	all := b.f.of(kind)
	if u := all[b.random.IntN(len(all))]; !b.busy[u] {
		return u
	}
	return nil
}

// for a while something is the matter with u.
func (b *trouble) after(u *upstream, do func()) {
	b.busy[u] = true
	wait := time.Duration(200+b.random.IntN(2500)) * time.Millisecond
	b.later = append(b.later, undoing{time.Now().Add(wait), func() {
		do()
		delete(b.busy, u)
	}})
}

func (b *trouble) signal(u *upstream, sig syscall.Signal, what string) bool {
	pids := u.rec.Live()
	if len(pids) == 0 {
		return false
	}
	b.did[what]++
	return syscall.Kill(pids[b.random.IntN(len(pids))], sig) == nil
}

func (b *trouble) kill(u *upstream) {
	if u != nil {
		b.signal(u, syscall.SIGKILL, "killed")
	}
}

func (b *trouble) freeze(u *upstream) {
	if u == nil || !b.signal(u, syscall.SIGSTOP, "frozen") {
		return
	}
	b.after(u, func() {
		if b.random.IntN(2) == 0 {
			b.signal(u, syscall.SIGKILL, "frozen and killed")
			return
		}
		b.signal(u, syscall.SIGCONT, "thawed")
	})
}

func (b *trouble) crash(u *upstream) {
	if u == nil {
		return
	}
	switch b.random.IntN(4) {
	case 0:
		b.did["sessions forgotten"]++
		u.web.ForgetSessions()
	case 1:
		b.did["streams cut"]++
		u.web.CutStreams()
	case 2:
		b.did["restarted"]++
		u.web.Restart()
	default:
		b.did["stopped listening"]++
		u.web.Stop()
		b.after(u, u.web.Start)
	}
}

func (b *trouble) hang(u *upstream) {
	if u == nil {
		return
	}
	b.did["hung"]++
	u.hangs.Store(true)
	b.after(u, func() { u.hangs.Store(false) })
}

// reload takes some servers away, changes others, and now and then leaves a file that cannot be read.
func (b *trouble) reload() {
	if b.random.IntN(5) == 0 {
		b.did["bad configuration"]++
		b.p.WriteConfig(`{"mcpServers":{"calm-child-0":`)
	} else {
		b.did["configuration"]++
		b.p.WriteConfig(b.f.config(
			func(*upstream) bool { return b.random.IntN(4) > 0 },
			func(*upstream) int { return b.random.IntN(3) },
		))
	}
	if b.random.IntN(2) == 0 { // the watch of the file sees it in any case
		b.p.Reload()
	}
}
