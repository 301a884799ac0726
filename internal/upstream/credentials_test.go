package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// webServer is a modern server that answers everything, calls with the credential that they came with.
func webServer(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f, err := wire.Parse(body, wire.Upstream, wire.Limits{})
		if err != nil || f.Kind != wire.KindRequest {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		if f.Method == "tools/call" {
			result = `{"content":[],"by":"` + r.Header.Get("Authorization") + `"}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, f.ID.Of(f.Raw), result)
	}))
	t.Cleanup(s.Close)
	return s
}

// webUpstream starts an upstream that gets the credentials of its callers.
func webUpstream(t *testing.T, r *rig, quota *Quota, sharing config.Sharing, instances int) *Upstream {
	t.Helper()
	cfg := urlConfig(webServer(t).URL)
	cfg.Protocol, cfg.Sharing, cfg.Instances, cfg.ForwardCallerAuth, cfg.MaxQueue = config.ProtocolModern, sharing, instances, true, 100
	u := New(cfg, Options{Log: r.env.log, Count: r.count, Budget: r.budget, Quota: quota, Limits: config.Limits{MaxFrameBytes: 1 << 20}})
	u.Start()
	t.Cleanup(u.Stop)
	<-u.First()
	return u
}

func bearer(name string) map[string][]string {
	if name == "" {
		return nil
	}
	return map[string][]string{"Authorization": {"Bearer " + name}}
}

func unitOf(u *Upstream, session, name string) Unit {
	return Unit{Key: session, Ends: session != "", Credentials: u.Credentials(bearer(name))}
}

func leased(t *testing.T, u *Upstream, session, name string) *Lease {
	t.Helper()
	l, err := u.Acquire(t.Context(), unitOf(u, session, name))
	if err != nil {
		t.Fatalf("%s of %s: %v", name, session, err)
	}
	return l
}

func TestSlotsAreKeyedByCredentials(t *testing.T) {
	// Each call is a session and a credential. Which of the calls, all under way at once, share a connection?
	calls := [][2]string{{"s1", "ann"}, {"s1", "ann"}, {"s2", "ann"}, {"s1", "bob"}, {"", "ann"}, {"", "bob"}, {"s1", ""}, {"s2", ""}}
	for sharing, want := range map[config.Sharing]string{
		config.SharingShared:  "0 0 0 3 0 3 6 6",
		config.SharingSession: "0 0 2 3 4 5 6 7",
		config.SharingCall:    "0 1 2 3 4 5 6 7",
	} {
		instances := 10
		if sharing == config.SharingShared {
			instances = 1
		}
		u := webUpstream(t, newRig(t), nil, sharing, instances)
		slots, got := map[*slot]int{}, []string{}
		for i, c := range calls {
			l := leased(t, u, c[0], c[1])
			defer l.Release()
			if _, known := slots[l.s]; !known {
				slots[l.s] = i
			}
			got = append(got, fmt.Sprint(slots[l.s]))
			x, err := l.Start(t.Context(), &Outgoing{ID: 1000, Method: "tools/call", Frame: []byte(`{"jsonrpc":"2.0","id":1000,"method":"tools/call","params":{}}`)})
			if err != nil {
				t.Fatal(err)
			}
			f := answerOf(t.Context(), t, x)
			if by := string(f.Body.Get(f.Raw, "by").Of(f.Raw)); by != `"`+strings.Join(bearer(c[1])["Authorization"], "")+`"` {
				t.Errorf("%s: a call of %q came with %s", sharing, c[1], by)
			}
			x.Close(false)
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: %s, want %s", sharing, all, want)
		}
	}
}

func TestTheEndOfASessionEndsOnlyItsOwnConnections(t *testing.T) {
	for sharing, want := range map[config.Sharing]int{config.SharingShared: 1, config.SharingSession: 1, config.SharingCall: 2} {
		u := webUpstream(t, newRig(t), nil, sharing, 10)
		held := []*Lease{leased(t, u, "s1", "ann"), leased(t, u, "s2", "ann")}
		for _, l := range held {
			l.Release()
		}
		u.EndUnit("s1")
		until(t, u, fmt.Sprintf("%s: %d slots are left", sharing, want), func() bool { return len(u.keyed) == want })
		u.mu.Lock()
		for _, s := range u.keyed {
			if s.conn == nil || s.owner == "s1" {
				t.Errorf("%s: the slot %q of %q is in state %s", sharing, s.key, s.owner, s.state)
			}
		}
		u.mu.Unlock()
	}
}

// until waits for what is seen under the upstream's lock.
func until(t *testing.T, u *Upstream, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		u.mu.Lock()
		ok, changed := condition(), u.changed
		u.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Until(deadline)):
			t.Fatalf("never: %s", what)
		}
	}
}

func TestIdleCredentialsMakeRoomForOthers(t *testing.T) {
	r, quota := newRig(t), NewQuota(3, 3)
	u := webUpstream(t, r, quota, config.SharingShared, 1)
	for _, name := range []string{"a", "b", "c"} {
		leased(t, u, "", name).Release()
	}
	a := leased(t, u, "", "a") // b is now the one that was idle for longest
	leased(t, u, "", "d").Release()
	u.mu.Lock()
	if s := u.keyed[u.Credentials(bearer("b")).slotKey()]; s != nil || len(u.keyed) != 3 {
		t.Errorf("%d slots, that of b is %v", len(u.keyed), s)
	}
	u.mu.Unlock()
	c, d := leased(t, u, "", "c"), leased(t, u, "", "d")
	if _, err := u.Acquire(t.Context(), unitOf(u, "", "e")); err == nil {
		t.Error("a connection was taken from those that use it")
	} else {
		wantReason(t, err, ReasonOverloaded)
	}
	if n := r.limit(count.LimitSlots); n != 1 {
		t.Errorf("%v breaches are counted", n)
	}
	for _, l := range []*Lease{a, c, d} {
		l.Release()
	}
	u.Stop()
	if quota.used != 0 || len(quota.by) != 0 {
		t.Errorf("%d connections were not given back: %v", quota.used, quota.by)
	}
}

func TestCredentialsThatNobodyUsesAreForgotten(t *testing.T) {
	quota := NewQuota(10, 10)
	u := webUpstream(t, newRig(t), quota, config.SharingShared, 1)
	for _, name := range []string{"ann", "bob"} {
		leased(t, u, "", name).Release()
	}
	ann := u.Credentials(bearer("ann"))
	u.Watch(ann, []string{"note://a"})
	u.EndIdleUnits(time.Now().Add(idleUnit + time.Minute))
	until(t, u, "only the watched one is left", func() bool { return len(u.keyed) == 1 && u.keyed[ann.slotKey()] != nil })
	u.Watch(ann, nil)
	u.EndIdleUnits(time.Now().Add(idleUnit + time.Minute))
	until(t, u, "none is left", func() bool { return len(u.keyed) == 0 && len(u.wishesOf) == 0 })
	if quota.used != 0 {
		t.Errorf("%d connections are still counted", quota.used)
	}
}

func TestNothingIsKeptOfAConnectionThatMadeRoom(t *testing.T) {
	u := webUpstream(t, newRig(t), nil, config.SharingShared, 1)
	leased(t, u, "", "ann").Release()
	u.mu.Lock()
	s := u.keyed[u.Credentials(bearer("ann")).slotKey()]
	if !u.evict(func(one *slot) bool { return one == s }) {
		t.Error("the idle connection does not make room")
	}
	s.wishes() // as its subscription looks at them once more before it ends
	u.mu.Unlock()
	until(t, u, "it has ended", func() bool { return s.ended })
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.wishesOf) > 0 {
		t.Error("what was to be heard on it is still kept")
	}
}

func TestWhatCredentialsAre(t *testing.T) {
	cfg := urlConfig("http://h.test/mcp")
	cfg.ForwardCallerAuth, cfg.ForwardHeaders, cfg.Headers = true, []string{"X-User", "X-Request-Id", "X-Team"}, map[string]config.Secret{"x-team": "blue"}
	u := New(cfg, Options{Log: newRig(t).env.log})
	key := func(pairs ...string) string {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return u.Credentials(h).key()
	}
	base := key("Authorization", "Bearer a", "X-User", "u")
	if base == "" || strings.Contains(base, "Bearer") || base != key("X-User", "u", "Authorization", "Bearer a") {
		t.Errorf("the key is %q", base)
	}
	if base != key("Authorization", "Bearer a", "X-User", "u", "X-Request-Id", "1", "X-Team", "red", "Cookie", "c=1") {
		t.Error("what is not forwarded, or differs with each request, makes a difference")
	}
	seen := map[string]bool{base: true}
	for _, other := range [][]string{{"Authorization", "Bearer b", "X-User", "u"}, {"Authorization", "Bearer a"}, {"X-User", "u"}, {"X-User", "Bearer a"},
		{"Authorization", "Bearer a", "X-User", "u", "X-User", "u"}, {"Authorization", "u", "X-User", "Bearer a"}} {
		if k := key(other...); k == "" || seen[k] {
			t.Errorf("%q has the key %q of something else", other, k)
		} else {
			seen[k] = true
		}
	}
	if key("X-Team", "red", "X-Request-Id", "1") != "" {
		t.Error("there are credentials where nothing tells who calls")
	}
	cfg.AuthToken = "own"
	if New(cfg, Options{Log: newRig(t).env.log}).Credentials(bearer("a")) != nil {
		t.Error("the credential of the entry itself does not win")
	}
}

// Two callers without a session that send the same language are strangers; with the same token they are one.
func TestWhatStrangersAgreeOnMakesThemNotOne(t *testing.T) {
	for name, want := range map[string]bool{
		"Authorization": true, "X-Api-Key": true, "X-Github-Token": true, "Accept-Language": false, "X-Tenant": false,
	} {
		cfg := &config.Server{Sharing: config.SharingSession, Transport: config.TransportHTTP}
		u := &Upstream{cfg: cfg}
		unit := Unit{Credentials: &Credentials{Key: "k", headers: http.Header{name: {"same"}}}}
		first, _ := u.unitKey(unit)
		second, once := u.unitKey(unit)
		if (first == second) != want || once == want {
			t.Errorf("%s: %q and %q, once: %v", name, first, second, once)
		}
	}
	if (*Credentials)(nil).tellsWhom() {
		t.Error("nothing tells whom")
	}
}
