package upstream

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestQuotaBoundsAllAndEach(t *testing.T) {
	q := NewQuota(3, 2)
	take := func(who string, want error) {
		t.Helper()
		if err := q.take(who); !errors.Is(err, want) {
			t.Errorf("take(%q) = %v, want %v", who, err, want)
		}
	}
	take("a", nil)
	take("a", nil)
	take("a", errOwnSlotsTaken)
	take("", nil)
	take("b", errSlotsTaken)
	q.give("a")
	take("b", nil)
	take("b", errSlotsTaken)
	for _, who := range []string{"a", "", "b"} {
		q.give(who)
	}
	if q.used != 0 || len(q.by) != 0 {
		t.Errorf("%d are used at the end, by %v", q.used, q.by)
	}
	var none *Quota
	if err := none.take("x"); err != nil {
		t.Error(err)
	}
	none.give("x")
}

func TestASlotOfASessionCountsUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		q := NewQuota(10, 1)
		u := startUpstream(t, r, &program{t: t}, func(c *config.Server, o *Options) {
			bySession(c, o)
			o.Quota = q
		})
		defer u.Stop()
		if _, err := instance(t, u, Unit{Key: "one", Principal: "p", Ends: true}); err != nil {
			t.Fatal(err)
		}
		_, err := instance(t, u, Unit{Key: "two", Principal: "p", Ends: true})
		wantReason(t, err, ReasonOverloaded)
		if _, err := instance(t, u, Unit{Key: "three", Principal: "q", Ends: true}); err != nil {
			t.Errorf("another principal: %v", err)
		}
		u.EndUnit("one")
		synctest.Wait()
		if _, err := instance(t, u, Unit{Key: "two", Principal: "p", Ends: true}); err != nil {
			t.Errorf("after the end of the first: %v", err)
		}
	})
}
