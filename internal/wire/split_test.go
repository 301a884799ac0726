package wire

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func texts(values [][]byte) []string {
	var list []string
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

func TestSplitValues(t *testing.T) {
	const msg = `{"jsonrpc":"2.0","id":1,"result":{"a":"{[\"x"}}`
	for _, c := range []struct {
		line   string
		values []string
		rest   string
	}{
		{``, nil, ``},
		{`server ready`, nil, `server ready`},
		{msg, []string{msg}, ``},
		{msg + msg + ` ` + msg, []string{msg, msg, msg}, ``},
		{"\x1b[32mINFO\x1b[0m " + msg, []string{msg}, "\x1b[32mINFO\x1b[0m"},
		{"Loading…\r" + msg + "\r", []string{msg}, "Loading…"},
		{"\uFEFF" + msg, []string{msg}, ""},
		{`[INFO] ` + msg, []string{msg}, `[INFO]`},
		{`[2026-07-01 10:00] {x} ` + msg + ` done`, []string{msg}, `[2026-07-01 10:00] {x}done`},
		{`{"half":"a` + "\r" + msg, []string{msg}, `{"half":"a`},
		{`[` + msg + `]`, []string{`[` + msg + `]`}, ``},
		// What stands inside something broken may be what a user wrote: it is no message of the server.
		{`{"result":{"text":` + msg, nil, `{"result":{"text":` + msg},
		{`{"a":` + strings.Repeat(`[`, depthCeiling+1) + msg, nil, `{"a":` + strings.Repeat(`[`, depthCeiling+1) + msg},
	} {
		values, rest := SplitValues([]byte(c.line), 100)
		if !slices.Equal(texts(values), c.values) || string(rest) != c.rest {
			t.Errorf("%.80q: %q and rest %.80q; want %q and %.80q", c.line, texts(values), rest, c.values, c.rest)
		}
	}
	values, rest := SplitValues([]byte(`{"a":1}{"b":2}{"c":3}`), 2)
	if !slices.Equal(texts(values), []string{`{"a":1}`, `{"b":2}`}) || string(rest) != `{"c":3}` {
		t.Errorf("two at most: %q and rest %q", texts(values), rest)
	}
}

func TestSplitBatch(t *testing.T) {
	raw := []byte("\r\n[ {\"a\":1} ,\n{\"b\":[{}]}]\n")
	if !IsBatch(raw) || IsBatch([]byte(` {"a":[]}`)) || IsBatch(nil) || !IsBatch([]byte("\uFEFF[")) {
		t.Error("IsBatch is wrong")
	}
	parts, err := SplitBatch(raw, 2)
	if err != nil || !slices.Equal(texts(parts), []string{`{"a":1}`, `{"b":[{}]}`}) {
		t.Fatalf("%q, %v", texts(parts), err)
	}
	_ = append(parts[0], "xxxxxxxx"...)
	if string(parts[1]) != `{"b":[{}]}` {
		t.Errorf("appending to one part changed the next: %s", parts[1])
	}
	for _, c := range []struct{ raw, reason string }{
		{`[]`, ReasonInvalidShape}, {` [ ] `, ReasonInvalidShape}, {`[{},1]`, ReasonNotAnObject}, {`[[{}]]`, ReasonNotAnObject},
		{`[{},{},{}]`, ReasonTooManyMembers}, {`[{}`, ReasonInvalidJSON}, {`[{}]x`, ReasonInvalidJSON}, {``, ReasonInvalidJSON}, {`{}`, ReasonInvalidShape},
		{strings.Repeat(`[`, depthCeiling+1), ReasonTooDeep},
	} {
		parts, err := SplitBatch([]byte(c.raw), 2)
		var pe *ParseError
		if !errors.As(err, &pe) || pe.Reason != c.reason || parts != nil {
			t.Errorf("%.40s: %q, %v; want %s", c.raw, texts(parts), err, c.reason)
		}
	}
}
