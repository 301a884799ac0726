package proxy

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

// What one server may announce that its lists do not explain: a few times, then once in a while. One that announces more
// often than insistMost between two looks at its lists means nothing by it, and is not believed for as long.
const (
	insistBurst = 5
	insistMost  = 3
	insistPause = 10 * time.Second
)

// insistence keeps which lists a server has announced as changed. Where its list then is the same, byte for byte, what has
// changed does not show in it; modern clients that listen are told all the same, now and then. It is safe for concurrent
// use.
type insistence struct {
	mu        sync.Mutex
	announced [kinds]int
	limit     *rate.Limiter
	quiet     time.Time // until when nothing is believed
}

func newInsistence() *insistence {
	return &insistence{limit: rate.NewLimiter(rate.Every(insistPause), insistBurst)}
}

// note notes an announcement.
func (i *insistence) note(method string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for k := range kinds {
		if kindInfo[k].changed == method {
			i.announced[k]++
		}
	}
}

// take gives the lists that were announced and are the same as before, and forgets what was announced.
func (i *insistence) take(before, after *listing, now time.Time) (same [kinds]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	announced := i.announced
	i.announced = [kinds]int{}
	if slices.Max(announced[:]) > insistMost {
		i.quiet = now.Add(insistPause)
	}
	if now.Before(i.quiet) || before == nil || before.kept {
		return same
	}
	for k := range kinds {
		same[k] = announced[k] > 0 && sameOffers(before.offers[k], after.offers[k])
	}
	// One word announces both.
	both := same[Resource] && same[Template]
	same[Resource], same[Template] = both, both
	if same != [kinds]bool{} && !i.limit.AllowN(now, 1) {
		return [kinds]bool{}
	}
	return same
}

func sameOffers(a, b []*offer) bool {
	return slices.EqualFunc(a, b, func(a, b *offer) bool { return bytes.Equal(a.raw, b.raw) })
}

// insist passes on an announcement that the lists do not explain, to the views that show something of the server there.
func (c *catalog) insist(u *upstream.Upstream, same [kinds]bool) {
	if same == [kinds]bool{} {
		return
	}
	for key, v := range c.snap.Load().views {
		var told [kinds]bool
		for k := range kinds {
			told[k] = same[k] && slices.ContainsFunc(v.listed[k], func(it *Item) bool { return it.Upstream == u })
		}
		if told != [kinds]bool{} {
			c.onInsist(key, told)
		}
	}
}
