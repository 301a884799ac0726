package churn

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// seed makes a run repeatable as far as the choice of what happens goes.
const seed = 20260728

func TestTroubleStaysLocalAndLeavesNothingBehind(t *testing.T) {
	long := length(t)
	f := newFleet(t)
	p := testmcp.StartProxy(t, f.plain(), testmcp.WithEnv("GORACE=atexit_sleep_ms=0"))
	rest(t, p, f) // everybody has started

	quiet := run(t, p, f, 1, func() { <-time.After(long / 4) })
	before := rest(t, p, f)

	b := newTrouble(t, p, f, seed)
	rough := run(t, p, f, 2, func() { b.make(long) })
	after := rest(t, p, f)
	for end := time.Now().Add(testmcp.Patience); !after.atMost(before) && time.Now().Before(end); {
		after = settled(p)
	}

	report(t, "quiet", quiet)
	report(t, "rough", rough)
	t.Logf("what happened in %v: %v", long, b.did)
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	if !after.atMost(before) {
		t.Errorf("something is left over:\nbefore: %v\nafter:  %v", before, after)
	}
	for _, kind := range []fate{calm, killed, frozen, swapped, crashing, hanging} {
		if rough.good[kind] == 0 {
			t.Errorf("no call of the servers that are %s succeeded", kind)
		}
	}
}

// run lets the clients call while something happens.
func run(t *testing.T, p *testmcp.Proxy, f *fleet, nth uint64, happens func()) *tally {
	t.Helper()
	stop, done := make(chan struct{}), make(chan *tally, 1)
	go func() { done <- crowd(t, p, f, seed+nth, stop) }()
	happens()
	close(stop)
	return <-done
}

func report(t *testing.T, name string, y *tally) {
	t.Helper()
	const most = 10
	for i, w := range y.wrong {
		if i == most {
			t.Errorf("%s: and %d more", name, len(y.wrong)-most)
			break
		}
		t.Errorf("%s: %s", name, w)
	}
	t.Logf("%s: p99 of servers to which nothing happened %v", name, y.p99().Round(10*time.Microsecond))
	for _, kind := range slices.Sorted(maps.Keys(y.good)) {
		t.Logf("%s: %s: %d good, faults %v", name, kind, y.good[kind], y.faults[kind])
	}
}
