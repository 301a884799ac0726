package session

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/proxy"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

func sealerOf(t testing.TB, secrets ...string) *sealer {
	t.Helper()
	var keys [][]byte
	for _, s := range secrets {
		keys = append(keys, []byte(s))
	}
	out, err := newSealer(keys)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var sealedAt = time.Unix(1_800_000_000, 0)

func sampleClaims() claims {
	return claims{version: wire.Rev20250618, caps: proxy.CapElicitForm | proxy.CapRoots, issued: sealedAt, expires: sealedAt.Add(time.Hour), unique: newUnique()}
}

func TestAnIDCarriesItsSession(t *testing.T) {
	for _, version := range sealedRevisions {
		for _, caps := range []proxy.Caps{0, 1, proxy.CapTasks, 0xffff} {
			want := sampleClaims()
			want.version, want.caps = version, caps
			s := sealerOf(t, "one")
			got, err := s.open(s.seal(want, "server/a", "alice"), "server/a", "alice", sealedAt)
			if err != nil || got != want {
				t.Errorf("%s, %x: got %+v, %v", version, caps, got, err)
			}
		}
	}
}

func TestIDsAreShortVisibleAndOfOneSize(t *testing.T) {
	s, seen, size := sealerOf(t, "one"), map[string]bool{}, 0
	for _, principal := range []string{"", "alice", strings.Repeat("é", 500)} {
		for range 50 {
			id := s.seal(sampleClaims(), strings.Repeat("v", len(principal)), principal)
			if size == 0 {
				size = len(id)
			}
			if len(id) != size || len(id) > 200 || seen[id] {
				t.Fatalf("%q has %d characters, or came before", id, len(id))
			}
			seen[id] = true
			if i := strings.IndexFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e }); i >= 0 {
				t.Fatalf("%q is not visible ASCII", id)
			}
		}
	}
}

func TestWhichIDsAreOpened(t *testing.T) {
	old, both, other := sealerOf(t, "old"), sealerOf(t, "new", "old"), sealerOf(t, "other")
	id := old.seal(sampleClaims(), "v", "alice")
	for _, c := range []struct {
		name            string
		by              *sealer
		id              string
		view, principal string
		at              time.Time
		want            error
	}{
		{"its own", old, id, "v", "alice", sealedAt, nil},
		{"after a rotation", both, id, "v", "alice", sealedAt, nil},
		{"of the new key by the old one", old, both.seal(sampleClaims(), "v", "alice"), "v", "alice", sealedAt, errNotOurs},
		{"of another key", other, id, "v", "alice", sealedAt, errNotOurs},
		{"just before its end", old, id, "v", "alice", sealedAt.Add(time.Hour - time.Second), nil},
		{"at its end", old, id, "v", "alice", sealedAt.Add(time.Hour), errExpired},
		{"of somebody else", old, id, "v", "bob", sealedAt, errOtherUser},
		{"of nobody", old, id, "v", "", sealedAt, errOtherUser},
		{"of another endpoint", old, id, "w", "alice", sealedAt, errOtherUser},
		{"with the names swapped", old, id, "alice", "v", sealedAt, errOtherUser},
		{"empty", old, "", "v", "alice", sealedAt, errNotOurs},
		{"too long", old, id + "A", "v", "alice", sealedAt, errNotOurs},
		{"too short", old, id[:len(id)-1], "v", "alice", sealedAt, errNotOurs},
		{"with a line break in it", old, "\n" + id[1:], "v", "alice", sealedAt, errNotOurs},
		{"in another alphabet", old, strings.Repeat("+", len(id)), "v", "alice", sealedAt, errNotOurs},
	} {
		if _, err := c.by.open(c.id, c.view, c.principal, c.at); !errors.Is(err, c.want) {
			t.Errorf("an id %s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestAChangedIDIsRefusedWhateverByteIsChanged(t *testing.T) {
	s := sealerOf(t, "one")
	id := s.seal(sampleClaims(), "v", "alice")
	for i := range len(id) {
		for _, c := range []byte("Aa0-_") {
			changed := []byte(id)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if _, err := s.open(string(changed), "v", "alice", sealedAt); !errors.Is(err, errNotOurs) {
				t.Errorf("character %d as %q: %v", i, c, err)
			}
		}
	}
}

func TestAnIDSaysNothingAboutItsOwner(t *testing.T) {
	s := sealerOf(t, "one")
	raw, err := idText.DecodeString(s.seal(sampleClaims(), "server/secret-endpoint", "alice"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"alice", "secret-endpoint", wire.Rev20250618} {
		if bytes.Contains(raw, []byte(word)) {
			t.Errorf("the id holds %q", word)
		}
	}
}

func TestTheUnitIsThatOfTheIDAndNotTheIDItself(t *testing.T) {
	s := sealerOf(t, "one")
	c := sampleClaims()
	first, second := s.seal(c, "v", "alice"), s.seal(c, "v", "alice")
	a, errA := s.open(first, "v", "alice", sealedAt)
	b, errB := s.open(second, "v", "alice", sealedAt)
	if errA != nil || errB != nil || a.unique.unit() != b.unique.unit() || first == second {
		t.Errorf("%v, %v: the units are %q and %q", errA, errB, a.unique.unit(), b.unique.unit())
	}
	if strings.Contains(first, a.unique.text()) {
		t.Error("the id shows the unit")
	}
}

func TestWithoutASecretEachSealerHasItsOwn(t *testing.T) {
	a, b := sealerOf(t), sealerOf(t)
	if _, err := b.open(a.seal(sampleClaims(), "v", "alice"), "v", "alice", sealedAt); !errors.Is(err, errNotOurs) {
		t.Errorf("the other one gives %v", err)
	}
}

func FuzzOpenAnID(f *testing.F) {
	s := sealerOf(f, "one")
	f.Add(s.seal(sampleClaims(), "v", "alice"))
	f.Add("")
	f.Add(strings.Repeat("A", idText.EncodedLen(idBytes)))
	f.Fuzz(func(t *testing.T, id string) {
		c, err := s.open(id, "v", "mallory", sealedAt)
		if err == nil {
			t.Errorf("%q opens as %+v", id, c)
		}
	})
}

func FuzzParseEventID(f *testing.F) {
	f.Add("abcdefgh-1-z")
	f.Add("--")
	f.Add("x-9zzzzzzzzzzzzzzzz-1")
	f.Fuzz(func(t *testing.T, id string) {
		h := newShelf(sampleSessions(), sampleLimits(), nil)
		of := &tapes{}
		tp := h.open(of, nil, nil)
		for tp.last < 3 {
			tp.keep(tp.next(), []byte("{}"), false)
		}
		found, seq, ok := h.find(of, id)
		if ok && (found != tp || seq > 3) {
			t.Errorf("%q finds event %d", id, seq)
		}
		h.stop()
	})
}
