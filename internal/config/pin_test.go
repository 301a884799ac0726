package config

import "testing"

func TestPinIsInheritedAndOverridden(t *testing.T) {
	l := loadText(t, `{"mcpServers":{"a":{"command":"/x"},"b":{"command":"/x","pin":false},"c":{"command":"/x","pin":true}},"proxy":{"pin":"strict"}}`, variables{"HOME": "/h"})
	if len(l.Problems) > 0 {
		t.Fatal(l.Problems)
	}
	for i, want := range []Pin{PinStrict, PinOff, PinTrust} {
		if s := l.Config.Servers[i]; s.Pin != want || s.Pinned() != (want != PinOff) {
			t.Errorf("%s has pin %q, want %q", s.ID, s.Pin, want)
		}
	}
}
