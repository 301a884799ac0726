package wire

import (
	"encoding/json"
	"testing"
)

func TestGrammar(t *testing.T) {
	for _, v := range []string{
		`0`, `-0`, `10`, `-1.5e+10`, `1E-2`, `0.0`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`, `0x1`, `1_0`, `NaN`, `-Infinity`, `--1`,
		`true`, `false`, `null`, `tru`, `truth`, `True`, `nul`, `fals`, `nil`, `'a'`, `a`,
		`""`, `"a`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\`, `"\"`, "\"\x1f\"", "\"\x7f\"", `"\b\f\n\r\t\"\\\/\uABcd"`, `"a" "b"`,
		`[]`, `[ ]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `[`, `[1`, `[1,`, `]`, `[}`, `[1}`,
		`{}`, `{ }`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1 "b":2}`, `{`, `{"a`, `{"a":1`, `{"a":1]`, `{"a":[}`,
		"\v1", "\f1", "\u00a01", "1\x00", `/**/1`, `1//`, `{"a":1;"b":2}`,
	} {
		for _, raw := range []string{
			`{"jsonrpc":"2.0","id":1,"result":` + v + `}`, `{"jsonrpc":"2.0","id":1,"result":{"x":[` + v + `]}}`, `{"jsonrpc":"2.0","id":1,"result":7,"x":` + v,
		} {
			valid := json.Valid([]byte(raw))
			_, err := Parse([]byte(raw), Upstream, Limits{})
			if valid != (err == nil) {
				t.Errorf("%s: valid %v, error %v", raw, valid, err)
			}
			if !valid {
				refusal(t, raw, Upstream, Limits{})
			}
		}
	}
}
