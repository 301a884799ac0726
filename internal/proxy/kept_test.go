package proxy

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// shelf is a Memory.
type shelf struct {
	mu       sync.Mutex
	catalogs map[string]string
	writes   int
}

func (s *shelf) Catalog(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.catalogs[key])
}

func (s *shelf) SetCatalog(key string, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalogs == nil {
		s.catalogs = map[string]string{}
	}
	s.catalogs[key] = string(b)
	s.writes++
	return nil
}

// filled gives a memory after a run in which the server was listed.
func filled(t *testing.T, s *server) *shelf {
	t.Helper()
	m := &shelf{}
	st := newStage(t, Options{Memory: m}, nil, s)
	st.listed(ViewAll, Tool)
	sleep(context.Background(), time.Second)
	synctest.Wait()
	st.stop()
	if m.writes != 1 {
		t.Fatalf("the catalog was kept %d times", m.writes)
	}
	return m
}

const odd = `{"name":"b","title":"<&>\u2028 \"é","inputSchema":{"type":"object"},"x":1e400}`

func TestListsAreThereAtOnceAfterARestart(t *testing.T) {
	for _, era := range []wire.Era{wire.Legacy, wire.Modern} {
		synctest.Test(t, func(t *testing.T) {
			s := (&server{id: "a", era: era}).set(Tool, tool("a"), odd).set(Resource, `{"uri":"file:///r","name":"r"}`)
			m := filled(t, s)
			silent := &server{id: "a", era: era, on: func(*wire.Frame, io.Writer) (string, bool) { return "", true }}
			st := newStage(t, Options{Memory: m}, nil, silent)
			defer st.stop()
			began := time.Now()
			if got := st.listed(ViewAll, Tool); got != "a__a a__b" {
				t.Errorf("%s: tools: %s", era, got)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: they took %s", era, took)
			}
			if got := string(st.p.catalog.listing("a").offers[Tool][1].raw); got != odd {
				t.Errorf("%s: an item came back as %s", era, got)
			}
			if got := st.p.Instructions(ServerView("a")); got != "of a" {
				t.Errorf("%s: the instructions are %q", era, got)
			}
		})
	}
}

func TestWhatHasChangedSinceIsCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).tools("one", "two")
		m := filled(t, s)
		s.tools("two", "three")
		st := newStage(t, Options{Memory: m}, nil, s)
		defer st.stop()
		if got := st.listed(ViewAll, Tool); got != "a__one a__two" {
			t.Errorf("at first: %s", got)
		}
		sleep(context.Background(), time.Second)
		synctest.Wait()
		if got := st.listed(ViewAll, Tool); got != "a__two a__three" {
			t.Errorf("later: %s", got)
		}
		if got := st.told(ViewAll); len(got) != 1 || got[0] != "true false false" {
			t.Errorf("clients are told %q", got)
		}
		if m.writes != 2 {
			t.Errorf("the catalog was kept %d times", m.writes)
		}
	})
}

func TestAServerThatIsTheSameChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&server{id: "a"}).set(Tool, tool("one"), odd)
		m := filled(t, s)
		st := newStage(t, Options{Memory: m}, nil, s)
		defer st.stop()
		sleep(context.Background(), time.Minute)
		synctest.Wait()
		if got := st.told(ViewAll); len(got) != 0 || m.writes != 1 {
			t.Errorf("clients are told %q, and the catalog was kept %d times", got, m.writes)
		}
	})
}

func TestAnotherDefinitionHasAnotherCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := filled(t, (&server{id: "a"}).tools("one"))
		st := newStage(t, Options{Memory: m}, func(c *config.Server) { c.Env = map[string]string{"A": "b"} }, (&server{id: "a"}).tools("two"))
		defer st.stop()
		if got := st.listed(ViewAll, Tool); got != "a__two" {
			t.Errorf("tools: %s", got)
		}
	})
}

func TestALazyServerIsStartedByTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lazy := func(c *config.Server) { c.Start = config.StartLazy }
		s := (&server{id: "a"}).tools("one")
		m := &shelf{}
		first := newStage(t, Options{Memory: m}, lazy, s)
		if got := first.listed(ViewAll, Tool); got != "a__one" {
			t.Errorf("without a catalog: %s", got)
		}
		sleep(context.Background(), time.Second)
		synctest.Wait()
		first.stop()
		before := len(s.received("initialize"))
		st := newStage(t, Options{Memory: m}, lazy, s)
		defer st.stop()
		sleep(context.Background(), time.Hour)
		synctest.Wait()
		if got := st.listed(ViewAll, Tool); got != "a__one" || len(s.received("initialize")) != before {
			t.Errorf("before the call: %s, after %d handshakes", got, len(s.received("initialize")))
		}
		u := st.ups.Get("a")
		if stat := u.Status(); !stat.Up || stat.State != "idle" || stat.Peer == nil {
			t.Errorf("its status is %+v", stat)
		}
		a := st.request(legacyCaller(), nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__one"}}`)
		if !strings.Contains(string(a.Bytes()), "of a") || len(s.received("initialize")) != before+1 {
			t.Errorf("the call: %s", a.Bytes())
		}
	})
}

func TestGarbageInTheMemoryIsFetchedAgain(t *testing.T) {
	for _, garbage := range []string{"", "x", "{}", "null", "[]", `{"format":2}`, `{"format":1,"peer":{"Era":"legacy","Version":"1999-01-01"}}`,
		`{"format":1,"peer":{"Era":"legacy","Version":"2025-11-25"},"items":[["{"]]}`, `{"format":1,"peer":{"Era":"legacy","Version":"2025-11-25","Capabilities":"{"}}`,
		`{"format":1,"peer":{"Era":"legacy","Version":"2025-11-25"},"items":[["[]"]]}`} {
		synctest.Test(t, func(t *testing.T) {
			s := (&server{id: "a"}).tools("one")
			m := filled(t, s)
			for key := range m.catalogs {
				m.catalogs[key] = garbage
			}
			st := newStage(t, Options{Memory: m}, nil, s)
			defer st.stop()
			if got := st.listed(ViewAll, Tool); got != "a__one" {
				t.Errorf("after %q: %s", garbage, got)
			}
		})
	}
}

func FuzzDecodeListing(f *testing.F) {
	f.Add([]byte(`{"format":1,"id":"a","peer":{"Era":"modern","Version":"2026-07-28","Capabilities":"{}"},"ttl":[1,2,3,4],"items":[["{\"name\":\"a\"}"],[],null]}`))
	c := count.New(prometheus.NewRegistry())
	c.Upstream("a")
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeListing(b, c, "a")
		if err != nil {
			return
		}
		text, err := l.encode("a")
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeListing(text, c, "a")
		if err != nil {
			t.Fatal(err)
		}
		for k := range kinds {
			if len(again.offers[k]) != len(l.offers[k]) {
				t.Errorf("%d of %d items of kind %s come back", len(again.offers[k]), len(l.offers[k]), k)
			}
		}
	})
}
