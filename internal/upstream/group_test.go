package upstream

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAGroupThatFinishes(t *testing.T) {
	for name, c := range map[string]struct{ takes, limit, want time.Duration }{
		"in time":  {time.Second, time.Minute, time.Second},
		"too slow": {time.Hour, time.Minute, time.Minute},
		"at once":  {0, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g group
				g.Go(func() { time.Sleep(c.takes) })
				began := time.Now()
				g.Finish(c.limit)
				if took := time.Since(began); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				ran := false
				g.Go(func() { ran = true })
				g.Stop()
				if ran || time.Since(began) != c.takes {
					t.Errorf("after the end: ran %v, waited %v", ran, time.Since(began))
				}
			})
		})
	}
}
