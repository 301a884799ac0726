package proxy

import (
	"strconv"
	"testing"
)

func TestWhoWasSentToAPage(t *testing.T) {
	v := newVisits()
	v.note("a", "1", "session/x")
	v.note("a", "1", "session/x")
	v.note("b", "1", "session/y")
	v.note("a", "2", "session/x")
	v.note("a", "2", "session/y") // two sessions: nobody's
	v.note("a", "2", "session/x")
	v.note("a", "3", "")
	for key, want := range map[visitKey]string{
		{"a", "1"}: "session/x", {"b", "1"}: "session/y", {"a", "2"}: "", {"a", "3"}: "", {"c", "1"}: "",
	} {
		if got := v.of(key.upstream, key.elicitation); got != want {
			t.Errorf("%v: %q, want %q", key, got, want)
		}
	}
	for i := range maxVisits {
		v.note("many", strconv.Itoa(i), "session/z")
	}
	if v.order.Len() != maxVisits || len(v.known) != maxVisits || v.of("a", "1") != "" || v.of("many", "0") != "session/z" {
		t.Errorf("%d and %d are kept", v.order.Len(), len(v.known))
	}
}
