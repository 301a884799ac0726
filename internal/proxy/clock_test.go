package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(k *clock)
		want time.Duration // when it expires; zero for never
	}{
		"silence":               {func(*clock) {}, 10 * time.Second},
		"a sign of life":        {func(k *clock) { time.Sleep(6 * time.Second); k.alive() }, 16 * time.Second},
		"a person thinks":       {func(k *clock) { k.hold(); time.Sleep(time.Hour); k.free() }, time.Hour + 10*time.Second},
		"life while one thinks": {func(k *clock) { k.hold(); time.Sleep(time.Minute); k.alive() }, 0},
		"two think":             {func(k *clock) { k.hold(); k.hold(); k.free() }, 0},
		"the end":               {func(k *clock) { k.stop() }, 0},
		"a person after the end": {func(k *clock) {
			k.hold()
			k.stop()
			k.free()
			k.alive()
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var expired time.Duration
				var k clock
				k.start(10*time.Second, func() { expired = time.Since(began) })
				c.do(&k)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if expired != c.want {
					t.Errorf("expired after %v, want %v", expired, c.want)
				}
				k.stop()
			})
		})
	}
}
