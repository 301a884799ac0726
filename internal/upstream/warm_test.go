package upstream

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

func TestTheNextSessionFindsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := &program{t: t}
		quota := NewQuota(3, 3)
		u := startUpstream(t, r, p, func(c *config.Server, o *Options) {
			c.Sharing, c.Prewarm, o.Quota = config.SharingSession, true, quota
		})
		<-u.First()
		wantLive(t, p, 2, 2) // the one that lists, and the spare one
		for i, want := range []string{"2", "3", "4"} {
			key := string(rune('a' + i))
			if got, err := instance(t, u, Unit{Key: key, Ends: true}); err != nil || !strings.Contains(got, want) {
				t.Errorf("session %s is served by %s, %v; want instance %s", key, got, err, want)
			}
			wantLive(t, p, 3+i, 3+i)
		}
		if got, err := instance(t, u, Unit{Key: "a", Ends: true}); err != nil || !strings.Contains(got, "2") {
			t.Errorf("the first session has moved to %s, %v", got, err)
		}
		_, err := instance(t, u, Unit{Key: "d", Ends: true})
		wantReason(t, err, ReasonOverloaded)
		u.EndUnit("a")
		wantLive(t, p, 5, 4)
		if got, err := instance(t, u, Unit{Key: "d", Ends: true}); err != nil || !strings.Contains(got, "5") {
			t.Errorf("after the end of one the next is served by %s, %v", got, err)
		}
		wantLive(t, p, 6, 5)
		if n := u.Status().Slots[StateReady]; n != 5 {
			t.Errorf("%d connections are told of", n)
		}
		u.Stop()
		if quota.used != 0 {
			t.Errorf("%d connections were not given back", quota.used)
		}
	})
}

func TestTheNextCallFindsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, func(c *config.Server, _ *Options) {
			c.Sharing, c.Prewarm, c.Instances = config.SharingCall, true, 3
		})
		defer u.Stop()
		<-u.First()
		for _, live := range []int{2, 3, 3} {
			l, err := u.Acquire(t.Context(), Unit{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			wantLive(t, p, live, live)
		}
	})
}

func TestASpareConnectionRestsAndIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &program{t: t}
		u := startUpstream(t, newRig(t), p, func(c *config.Server, _ *Options) {
			c.Sharing, c.Prewarm, c.IdleStop = config.SharingSession, true, time.Minute
		})
		defer u.Stop()
		pass(2 * time.Minute)
		wantLive(t, p, 2, 0)
		if _, err := instance(t, u, Unit{Key: "a", Ends: true}); err != nil {
			t.Fatal(err)
		}
		wantLive(t, p, 4, 2)
	})
}
