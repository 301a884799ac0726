package state

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func sessionKey(t *testing.T, s *Store) []byte {
	t.Helper()
	key, err := s.SessionKey()
	if err != nil || len(key) != keyBytes {
		t.Fatalf("SessionKey gives %d bytes, %v", len(key), err)
	}
	return key
}

func TestTheSessionKeyIsMadeOnceAndIsForTheOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := sessionKey(t, s)
	if again := sessionKey(t, s); !bytes.Equal(first, again) {
		t.Error("the same process gets another key")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if later := sessionKey(t, open(t, dir)); !bytes.Equal(first, later) {
		t.Error("the next process gets another key")
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the key: %v, %v", info.Mode(), err)
	}
	if other := sessionKey(t, open(t, t.TempDir())); bytes.Equal(first, other) {
		t.Error("two directories share a key")
	}
}

func TestAMemoryStoreMakesAKeyOfItsOwn(t *testing.T) {
	if bytes.Equal(sessionKey(t, open(t, "")), sessionKey(t, open(t, ""))) {
		t.Error("two stores share a key")
	}
}

func TestASpoiltKeyIsReplaced(t *testing.T) {
	for _, text := range []string{"", "null", `""`, `"AAAA"`, `{}`, `"no base64!"`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, keyFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		if key := sessionKey(t, s); !bytes.Equal(key, sessionKey(t, s)) {
			t.Errorf("the key that replaced %q was not kept", text)
		}
		_ = s.Close()
	}
}

func TestAKeyThatCannotBeKeptIsStillGood(t *testing.T) {
	s := open(t, t.TempDir())
	s.dir = filepath.Join(s.dir, "gone")
	key, err := s.SessionKey()
	if len(key) != keyBytes || err == nil {
		t.Errorf("got %d bytes and the error %v", len(key), err)
	}
}

func TestRevokedSessionsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	want := map[string]int64{"a": 1, "b": 1 << 40}
	if err := s.SetRevoked(want); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if got := open(t, dir).Revoked(); !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestSpoiltRevocationsAreForgotten(t *testing.T) {
	for _, text := range []string{"", "null", "[]", `{"a":"b"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, revokedFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		if got := s.Revoked(); got == nil || len(got) != 0 {
			t.Errorf("a file of %q gives %v", text, got)
		}
		_ = s.Close()
	}
}
