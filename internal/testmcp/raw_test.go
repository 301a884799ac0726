package testmcp

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestRawKeepsBytes(t *testing.T) {
	r := Raw(`{"a":{"n":[9007199254740993, 1.10 ,"\u00e9"]},"b":null, "a" : {"n":[1e400]}}`)
	for _, tt := range []struct {
		path []any
		want string
	}{
		{[]any{"a", "n", 0}, "1e400"}, // of equal names the last counts
		{[]any{"b"}, "null"},
		{[]any{"c"}, ""},
		{[]any{"a", "n", 7}, ""},
		{[]any{"b", "x"}, ""},
	} {
		if got := r.At(tt.path...).String(); got != tt.want {
			t.Errorf("At(%v) = %q, want %q", tt.path, got, tt.want)
		}
	}
	if !r.Has("b") || r.Has("c") {
		t.Error("null is a value, absence is none")
	}
	if got := r.Keys(); !slices.Equal(got, []string{"a", "b", "a"}) {
		t.Errorf("keys %q", got)
	}
	if got := Raw(`[9007199254740993, 1.10 ,"\u00e9"]`).Items(); len(got) != 3 || string(got[1]) != "1.10" || string(got[2]) != `"\u00e9"` || got[2].Str() != "é" {
		t.Errorf("items %s", got)
	}
}

func TestMembersAreAddedAndNothingElseChanges(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{withMember(`{ "z":1.0 }`, "a", "2"), `{"a":2,"z":1.0 }`},
		{withMember(``, "a", "2"), `{"a":2}`},
		{withMember(`{"a":1}`, "a", "2"), `{"a":1}`},
		{withMember(`[1]`, "a", "2"), `[1]`},
		{withMeta(`{"name":"x"}`, `"k":1`), `{"_meta":{"k":1},"name":"x"}`},
		{withMeta(`{"name":"x","_meta":{ "p":1.0}}`, `"k":1`), `{"name":"x","_meta":{"k":1,"p":1.0}}`},
		{withMeta(`{"_meta":{}}`, `"k":1`), `{"_meta":{"k":1}}`},
		{Quote("<&>\n\u2028"), `"<&>\n\u2028"`},
	} {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

func TestHeaderValuesComeBack(t *testing.T) {
	for s, plain := range map[string]bool{
		"search": true, "a b": true, "": true, " lead": false, "tail\t": false, "天气": false, "a\nb": false, "=?base64?x?=": false,
	} {
		h := EncodeHeader(s)
		if back, ok := decodeHeader(h); !ok || back != s {
			t.Errorf("%q travels as %q and comes back as %q", s, h, back)
		}
		if (h == s) != plain {
			t.Errorf("%q travels as %q", s, h)
		}
	}
	if _, ok := decodeHeader("=?base64?%%?="); ok {
		t.Error("broken base64 was taken")
	}
}

func TestEventsAreReadInEveryForm(t *testing.T) {
	frame := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	for name, form := range map[string]func(string, []byte) []byte{
		"lf": EventForm, "crlf": EventEnding("\r\n"), "cr": EventEnding("\r"), "two lines": EventLines, "noise": EventAmongNoise,
	} {
		for _, whole := range []bool{true, false} {
			var got []Message
			text := ByteOrderMark + string(form("7", frame)) + "data: unfinished"
			var r readerFunc = strings.NewReader(text).Read
			if !whole { // a byte at a time, so that CR and LF come apart
				rest := strings.NewReader(text)
				r = func(b []byte) (int, error) { return rest.Read(b[:1]) }
			}
			err := readEvents(r, func(e Event) {
				if m := e.Message(); m.isAnswer() {
					got = append(got, m)
				}
			}, func() {})
			if err != nil || len(got) != 1 || !json.Valid(got[0].Raw) || string(got[0].ID) != "1" {
				t.Errorf("%s, whole %v: %v, %v", name, whole, got, err)
			}
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("id: 1\r\ndata: {}\r\n\r\n: c\n\ndata"))
	f.Add([]byte("\xEF\xBB\xBFevent: x\rdata:  y\r\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		events, lines := 0, bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r"))
		err := readEvents(bytes.NewReader(text), func(e Event) {
			events++
			if bytes.ContainsAny(e.Data, "\r") || strings.ContainsAny(e.ID+e.Name+e.Retry, "\r\n") {
				t.Errorf("a line end inside a field: %q", text)
			}
		}, func() {})
		if err != nil || events > lines {
			t.Errorf("%d events in %d lines, %v", events, lines, err)
		}
	})
}
