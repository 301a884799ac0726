package wire

import (
	"math"
	"testing"
)

func TestIDKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1`, true}, {`1`, `1.0`, true}, {`-0`, `0`, true}, {`-0.0`, `0`, true}, {`"A"`, `"\u0041"`, true}, {`"é"`, `"\u00e9"`, true},
		{`"\/"`, `"/"`, true}, {`"\ud83d\ude42"`, `"🙂"`, true}, {`123456789012345678901`, `123456789012345678901.0`, true},
		{`1`, `"1"`, false}, {`1`, `-1`, false}, {`9007199254740993`, `9007199254740992`, false}, {`"a"`, `"A"`, false},
		{`"\ud800"`, `"\ud801"`, false}, {`"\ud800"`, `"\ufffd"`, false}, {`""`, `0`, false}, {`10`, `1`, false},
	} {
		if !ValidID([]byte(c.a)) || !ValidID([]byte(c.b)) {
			t.Errorf("%s or %s is no valid id", c.a, c.b)
		}
		if same := IDKey([]byte(c.a)) == IDKey([]byte(c.b)); same != c.same {
			t.Errorf("%s and %s: keys %q and %q", c.a, c.b, IDKey([]byte(c.a)), IDKey([]byte(c.b)))
		}
	}
	if got := IDKey([]byte("1.5")); got != "1.5" {
		t.Errorf("the key of what is no id is %q", got)
	}
}

func TestInvalidIDs(t *testing.T) {
	for _, tok := range []string{``, `-`, `1.5`, `1.`, `.0`, `1e1`, `1.0e0`, `01`, `+1`, `null`, `true`, `{}`, `[]`, `"`, `"a`, `0x1`, ` 1`} {
		if ValidID([]byte(tok)) {
			t.Errorf("%q passes for an id", tok)
		}
	}
}

func TestUpstreamIDs(t *testing.T) {
	for _, n := range []uint64{0, 1, 17, math.MaxInt64, math.MaxUint64} {
		tok := AppendUpstreamID(nil, n)
		for _, form := range []string{string(tok), `"` + string(tok) + `"`, string(tok) + ".0"} {
			if got, ok := ParseUpstreamID([]byte(form)); !ok || got != n {
				t.Errorf("ParseUpstreamID(%s) = %d, %v", form, got, ok)
			}
		}
	}
	for _, tok := range []string{``, `""`, `"`, `-1`, `-0`, `1.5`, `1e1`, `"x"`, `" 1"`, `"01"`, `18446744073709551616`, `99999999999999999999999`, `null`} {
		if n, ok := ParseUpstreamID([]byte(tok)); ok {
			t.Errorf("ParseUpstreamID(%s) = %d, want a refusal", tok, n)
		}
	}
}
