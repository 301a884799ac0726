package wire

import (
	"encoding/json"
	"testing"
)

func TestDecodeString(t *testing.T) {
	for _, c := range []struct{ tok, want string }{
		{`""`, ``}, {`"a b"`, `a b`}, {`"\u0041\n\t\b\f\r\"\\\/"`, "A\n\t\b\f\r\"\\/"}, {`"\u00e9\/\ud83d\ude42"`, "é/🙂"},
		{`"\ud83d"`, "\uFFFD"}, {`"\ud83d\u0041"`, "\uFFFDA"}, {`"\ude42\ud83d"`, "\uFFFD\uFFFD"}, {`"\uD83D\uDE42é"`, "🙂é"},
		{`"\u0000"`, "\x00"}, {`"\ud83dx"`, "\uFFFDx"}, {`"\u212A"`, "\u212A"},
	} {
		got, ok := DecodeString([]byte(c.tok))
		if !ok || got != c.want {
			t.Errorf("DecodeString(%s) = %q, %v; want %q", c.tok, got, ok, c.want)
		}
		var std string
		if err := json.Unmarshal([]byte(c.tok), &std); err != nil || std != got {
			t.Errorf("DecodeString(%s) = %q, encoding/json says %q, %v", c.tok, got, std, err)
		}
	}
	for _, tok := range []string{``, `"`, `a`, `5`, `"a`, `a"`, `"a"b"`, `"\"`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\xff\"", ` "a"`, `"a" `} {
		if s, ok := DecodeString([]byte(tok)); ok {
			t.Errorf("DecodeString(%s) = %q, want a refusal", tok, s)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, `""`}, {`a/b<é>🙂`, `"a/b<é>🙂"`}, {"\"\\\n\r\t\x00\x1f\x7f", `"\"\\\n\r\t\u0000\u001f` + "\x7f" + `"`},
		{"\u2028x\u2029", `"\u2028x\u2029"`}, {"a\xffb", `"a\ufffdb"`}, {"\uFFFD", "\"\uFFFD\""},
	} {
		got := string(AppendString([]byte("x"), c.text))
		if got != "x"+c.want {
			t.Errorf("AppendString(%q) = %s, want %s", c.text, got[1:], c.want)
		}
		if n := stringLen(c.text); n != len(c.want) {
			t.Errorf("stringLen(%q) = %d, want %d", c.text, n, len(c.want))
		}
	}
}
