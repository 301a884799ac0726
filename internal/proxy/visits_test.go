package proxy

import (
	"strconv"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

func TestWhoWasSentToAPage(t *testing.T) {
	from := func(id, creds string) source { return source{&upstream.Upstream{ID: id}, creds} }
	v := newVisits()
	v.note(from("a", ""), "1", "session/x")
	v.note(from("a", ""), "1", "session/x")
	v.note(from("b", ""), "1", "session/y")
	v.note(from("a", ""), "2", "session/x")
	v.note(from("a", ""), "2", "session/y") // two sessions: nobody's
	v.note(from("a", ""), "2", "session/x")
	v.note(from("a", ""), "3", "")
	v.note(from("a", "ann"), "1", "session/ann") // on connections of their own
	v.note(from("a", "bob"), "1", "session/bob")
	for key, want := range map[visitKey]string{
		{"a", "", "1"}: "session/x", {"b", "", "1"}: "session/y", {"a", "", "2"}: "", {"a", "", "3"}: "", {"c", "", "1"}: "",
		{"a", "ann", "1"}: "session/ann", {"a", "bob", "1"}: "session/bob", {"a", "ann", "2"}: "",
	} {
		if got := v.of(from(key.upstream, key.creds), key.elicitation); got != want {
			t.Errorf("%v: %q, want %q", key, got, want)
		}
	}
	for i := range maxVisits {
		v.note(from("many", ""), strconv.Itoa(i), "session/z")
	}
	if v.order.Len() != maxVisits || len(v.known) != maxVisits || v.of(from("a", ""), "1") != "" || v.of(from("many", ""), "0") != "session/z" {
		t.Errorf("%d and %d are kept", v.order.Len(), len(v.known))
	}
}
