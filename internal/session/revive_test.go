package session

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// memory is what outlives a manager.
type memory struct {
	mu     sync.Mutex
	kept   map[string]int64
	writes int
	fails  bool
}

func (m *memory) Revoked() map[string]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.kept)
}

func (m *memory) SetRevoked(r map[string]int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errors.New("no room on the device")
	}
	m.kept = r
	m.writes++
	return nil
}

func (m *memory) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// lives plays one process after the other with the same key and memory.
func lives(t *testing.T, mem *memory, change func(*Options), each ...func(st *stage)) {
	t.Helper()
	for _, live := range each {
		st := newStage(t, &backend{}, func(o *Options) {
			o.Keys, o.Memory = [][]byte{[]byte("the key of these lives")}, mem
			if change != nil {
				change(o)
			}
		})
		live(st)
		st.stop()
	}
}

func (c client) at(st *stage) *client {
	c.st = st
	return &c
}

func TestASessionOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *client
		var units [2]string
		unit := func(st *stage) string {
			st.m.mu.Lock()
			defer st.m.mu.Unlock()
			for _, s := range st.m.sessions {
				return s.unit
			}
			return ""
		}
		lives(t, &memory{}, nil,
			func(st *stage) {
				c = (&client{st: st, principal: "alice", header: st.client().header}).open(wire.Rev20250618)
				units[0] = unit(st)
			},
			func(st *stage) {
				c = c.at(st)
				for _, thief := range []client{{principal: "bob", header: c.header}, {principal: "alice", view: "server/b", header: c.header}} {
					if r := thief.at(st).post(ping).wait(); r.code() != 404 {
						t.Errorf("somebody else gets %d", r.code())
					}
				}
				if st.m.Count() != 0 {
					t.Error("somebody else has brought the session to life")
				}
				if r := c.post(ping).wait(); r.code() != 200 {
					t.Errorf("the session is lost: %d %s", r.code(), r.text())
				}
				c.post(callT).wait()
				if n := st.metric("mcp_proxy_sessions_revived_total"); n != 1 {
					t.Errorf("%v revivals are counted", n)
				}
				if units[1] = unit(st); units[0] != units[1] || units[0] == "" || strings.Contains(units[0], c.header.Get("Mcp-Session-Id")) {
					t.Errorf("the units are %q", units)
				}
				for _, s := range st.m.sessions {
					if s.version != wire.Rev20250618 {
						t.Errorf("it speaks %s now", s.version)
					}
				}
			})
	})
}

// Nobody knows what the client has missed meanwhile.
func TestARevivedSessionIsToldToLookAtItsLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *client
		lives(t, &memory{}, nil,
			func(st *stage) {
				c = legacyClient(st)
				r := c.do(http.MethodGet, "")
				synctest.Wait()
				if got := short(t, r.events()); len(got) != 0 {
					t.Errorf("a new session is told %q", got)
				}
				r.cancel()
			},
			func(st *stage) {
				r := c.at(st).do(http.MethodGet, "")
				synctest.Wait()
				want := []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"}
				if got := short(t, r.events()); !slices.Equal(got, want) {
					t.Errorf("it is told %q", got)
				}
				r.cancel()
			})
	})
}

func TestEventIDsOfAnotherLifeAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *client
		var id string
		lives(t, &memory{}, nil,
			func(st *stage) {
				c = legacyClient(st)
				r := c.do(http.MethodGet, "")
				synctest.Wait()
				id = r.lastID()
				r.cancel()
			},
			func(st *stage) {
				r := c.at(st).do(http.MethodGet, "") // a stream with the same number
				again := c.at(st).comesBack(id)
				synctest.Wait()
				if r.over() || again.over() {
					t.Error("the new stream is taken for the old one")
				}
				r.cancel()
				again.cancel()
			})
	})
}

func TestADeletedSessionStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{}
		var gone, idle, stays *client
		check := func(st *stage) {
			for name, c := range map[string]*client{"live": gone, "idle": idle} {
				if r := c.at(st).post(ping).wait(); r.code() != 404 {
					t.Errorf("one that was deleted while %s gives %d", name, r.code())
				}
				if r := c.at(st).do(http.MethodDelete, "").wait(); r.code() != 404 {
					t.Errorf("deleting it again gives %d", r.code())
				}
			}
			if r := stays.at(st).post(ping).wait(); r.code() != 200 {
				t.Errorf("another one gives %d", r.code())
			}
		}
		short := func(o *Options) { o.Sessions.IdleTimeout = time.Second }
		lives(t, mem, short,
			func(st *stage) {
				idle = legacyClient(st)
				time.Sleep(time.Minute)
				gone, stays = legacyClient(st), legacyClient(st)
				if st.m.Count() != 2 {
					t.Fatalf("%d sessions are live", st.m.Count())
				}
				for _, c := range []*client{gone, idle} {
					if r := c.do(http.MethodDelete, "").wait(); r.code() != 204 {
						t.Errorf("DELETE gives %d", r.code())
					}
				}
				check(st)
			},
			check,
			func(st *stage) {
				time.Sleep(24 * time.Hour)
				if r := stays.at(st).do(http.MethodDelete, "").wait(); r.code() != 404 {
					t.Errorf("at its greatest age DELETE gives %d", r.code())
				}
				legacyClient(st).do(http.MethodDelete, "").wait()
			},
			func(*stage) {
				if n := len(mem.Revoked()); n != 1 {
					t.Errorf("%d ended sessions are kept, some beyond their expiry", n)
				}
			})
	})
}

func TestAForgottenKeyEndsAllSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newStage(t, &backend{}, nil)
		c := legacyClient(first)
		first.stop()
		second := newStage(t, &backend{}, nil)
		defer second.stop()
		if r := c.at(second).post(ping).wait(); r.code() != 404 {
			t.Errorf("without the key it gives %d", r.code())
		}
	})
}

// Sessions that take turns in a table that is too small for them lose nothing but time.
func TestAFullTableLosesNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, &backend{}, func(o *Options) { o.Limits.MaxSessions = 3 })
		defer st.stop()
		var all []*client
		for range 20 {
			all = append(all, legacyClient(st))
		}
		for range 3 {
			var calls []*response
			for _, c := range all {
				calls = append(calls, c.post(callT).wait())
			}
			for i, r := range calls {
				if r.code() != 200 || !strings.Contains(r.text(), `"result"`) {
					t.Errorf("session %d gets %d %s", i, r.code(), r.text())
				}
			}
		}
		if n := st.m.Count(); n > 3 {
			t.Errorf("%d sessions are live", n)
		}
		if st.metric("mcp_proxy_sessions_revived_total") < 17 {
			t.Error("the revivals are not counted")
		}
	})
}

func TestRequestsThatReviveASessionTogetherGetOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *client
		lives(t, &memory{}, nil,
			func(st *stage) { c = legacyClient(st) },
			func(st *stage) {
				c = c.at(st)
				var all []*response
				for range 20 {
					all = append(all, c.post(ping))
				}
				for _, r := range all {
					if r.wait().code() != 200 {
						t.Errorf("one gets %d", r.code())
					}
				}
				if st.m.Count() != 1 || st.metric("mcp_proxy_sessions_revived_total") != 1 {
					t.Errorf("%d sessions are live", st.m.Count())
				}
			})
	})
}

func TestManyDeletionsAreWrittenTogetherAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{}
		r := newRevoked(mem, nil, zap.NewNop())
		go r.run(t.Context())
		now := time.Now()
		var all []uniqueID
		for i := range maxRevoked + 1 {
			u := newUnique()
			all = append(all, u)
			r.add(u, now.Add(time.Hour+time.Duration(i)*time.Second))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := mem.written(); n > 2 {
			t.Errorf("they are written %d times", n)
		}
		kept := len(mem.Revoked())
		if kept > maxRevoked || kept < maxRevoked*8/10 {
			t.Errorf("%d are kept", kept)
		}
		if r.has(all[0]) || !r.has(all[len(all)-1]) {
			t.Error("not the ones that expire first are forgotten")
		}
		again := newRevoked(mem, nil, zap.NewNop())
		if !again.has(all[len(all)-1]) {
			t.Error("the next process does not know them")
		}
	})
}

func TestWhatIsLeftIsWrittenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{}
		lives(t, mem, nil, func(st *stage) {
			for range 2 {
				legacyClient(st).do(http.MethodDelete, "").wait()
			}
		})
		if n := len(mem.Revoked()); n != 2 {
			t.Errorf("%d are written", n)
		}
	})
}

func TestAMemoryThatFailsStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives(t, &memory{fails: true, kept: map[string]int64{"no hex": 1 << 40, "ab": 1 << 40}}, nil, func(st *stage) {
			c := legacyClient(st)
			if r := c.do(http.MethodDelete, "").wait(); r.code() != 204 {
				t.Errorf("DELETE gives %d", r.code())
			}
			time.Sleep(time.Minute)
			if r := c.post(ping).wait(); r.code() != 404 {
				t.Errorf("afterwards it gives %d", r.code())
			}
		})
	})
}
