package proxy

import (
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func TestAnnouncementsThatTheListDoesNotExplain(t *testing.T) {
	now := time.Now()
	list := func(era wire.Era, tool string) *listing {
		l := &listing{peer: &upstream.Peer{Era: era}}
		l.offers[Tool] = []*offer{{raw: []byte(tool)}}
		return l
	}
	a, again, b := list(wire.Modern, "a"), list(wire.Modern, "a"), list(wire.Modern, "b")
	only := func(of ...Kind) (out [kinds]bool) {
		for _, k := range of {
			out[k] = true
		}
		return out
	}
	const tools, resources = "notifications/tools/list_changed", "notifications/resources/list_changed"
	kept := list(wire.Modern, "a")
	kept.kept = true
	for name, c := range map[string]struct {
		announced     string
		before, after *listing
		want          [kinds]bool
	}{
		"nothing announced":  {"", a, again, only()},
		"the same":           {tools, a, again, only(Tool)},
		"another":            {tools, a, b, only()},
		"one word for both":  {resources, a, again, only(Resource, Template)},
		"an old server":      {tools, list(wire.Legacy, "a"), list(wire.Legacy, "a"), only(Tool)},
		"the first listing":  {tools, nil, again, only()},
		"after that kept":    {tools, kept, again, only()},
		"an unknown message": {"notifications/other", a, again, only()},
	} {
		i := newInsistence()
		i.note(c.announced)
		if got := i.take(c.before, c.after, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if got := i.take(a, again, now.Add(time.Hour)); got != only() {
			t.Errorf("%s: afterwards %v", name, got)
		}
	}
	storm := newInsistence()
	for _, c := range []struct {
		at    time.Duration
		times int
		want  [kinds]bool
	}{{0, insistMost + 1, only()}, {insistPause - 1, 1, only()}, {insistPause, 1, only(Tool)}} {
		for range c.times {
			storm.note(tools)
		}
		if got := storm.take(a, again, now.Add(c.at)); got != c.want {
			t.Errorf("%d at a time, after %s: %v", c.times, c.at, got)
		}
	}
	i := newInsistence()
	for n := range insistBurst {
		i.note(tools)
		if got := i.take(a, again, now); got != only(Tool) {
			t.Errorf("the announcement %d: %v", n, got)
		}
	}
	for _, c := range []struct {
		at   time.Duration
		want [kinds]bool
	}{{0, only()}, {insistPause / 2, only()}, {insistPause, only(Tool)}} {
		i.note(tools)
		if got := i.take(a, again, now.Add(c.at)); got != c.want {
			t.Errorf("after %s: %v", c.at, got)
		}
	}
}
