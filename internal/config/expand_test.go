package config

import (
	"io/fs"
	"strings"
	"testing"
)

func testExpander(env variables) *expander {
	files := map[string]string{"/dir/key": "from a file\n", "/abs/crlf": "one\r\n", "/dir/two": "one\n\n", "/dir/v": "deep"}
	return &expander{getenv: env.get, dir: "/dir", readFile: func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}}
}

func TestExpand(t *testing.T) {
	e := testExpander(variables{"A": "a", "EMPTY": "", "NESTED": "${A}$$", "HOME": "/home/me", "MCP_INPUT_API_KEY_2": "typed", "NAME": "v"})
	for in, want := range map[string]string{
		// references
		"${A}": "a", "<${A}${A}>": "<aa>", "${env:A}": "a", "${EMPTY}": "", "${NESTED}": "${A}$$",
		"${NOT:-d}": "d", "${A:-d}": "a", "${EMPTY:-d}": "d", "${NOT:-}": "", "${NOT:-http://h/}": "http://h/", "${env:NOT:-d}": "d",
		"${NOT:-${A}}": "a", "${NOT:-${ALSO:-x}y}": "xy", "${NOT:-$${A}}": "${A}",
		"${file:key}": "from a file", "${file:/abs/crlf}": "one", "${file:two}": "one\n", "${file:${NAME}}": "deep",
		"${input:api-key.2}": "typed", "${workspaceFolder}/x": "/dir/x", "${userHome}": "/home/me", "${HOME}": "/home/me",
		// literals
		"$${A}": "${A}", "a$$b$${c}": "a$$b${c}", "$${": "${", "$$${A}": "$${A}", "${A}$${A}": "a${A}",
		"pa$$word": "pa$$word", "a$b": "a$b", "$": "$", "x$Q$": "x$Q$", "$(id)": "$(id)", "%PATH%": "%PATH%", "$A": "$A",
		"${": "${", "${}": "${}", "${1}": "${1}", "${A": "${A", "${A ": "${A ", "x${ A }": "x${ A }", "${A}${": "a${", "${file:}": "${file:}", "${input:}": "${input:}",
		"${A-d}": "${A-d}", "${command:x}": "${command:x}", "": "",
	} {
		got := e.expand(in)
		if got.text != want || len(got.missing) > 0 {
			t.Errorf("%q is %q (missing %v), not %q", in, got.text, got.missing, want)
		}
	}
}

func TestExpandMissing(t *testing.T) {
	e := testExpander(variables{"A": "secret"})
	for in, want := range map[string]string{
		"${NOT}": "variable NOT is not set", "x${env:NOT}": "variable NOT is not set", "${input:k}": "variable MCP_INPUT_K is not set",
		"${file:no}": `file "no" cannot be read`, "${NOT:-${ALSO}}": "variable ALSO is not set", "${file:${NOT}}": "variable NOT is not set",
		"${file:${A}}": `file "${A}" cannot be read`, "${userHome}": "variable HOME is not set",
	} {
		got := e.expand(in)
		if len(got.missing) != 1 || !strings.HasPrefix(got.missing[0], want) || strings.Contains(got.missing[0], "secret") {
			t.Errorf("%q misses %v and not %q", in, got.missing, want)
		}
	}
}

// TestExpandNeverGoesOn holds that a text of references alone ends, however deep it nests.
func TestExpandNeverGoesOn(t *testing.T) {
	in := strings.Repeat("${N:-", 100) + "x" + strings.Repeat("}", 100)
	if got := testExpander(variables{}).expand(in); !strings.HasPrefix(got.text, "${N:-") {
		t.Errorf("defaults nested beyond the bound become %q", got.text)
	}
}

func TestReadRegular(t *testing.T) {
	if _, err := readRegular(t.TempDir()); err == nil {
		t.Error("a directory is read")
	}
	if _, err := readRegular("/dev/zero"); err == nil {
		t.Error("a device is read")
	}
}

func TestEnvFile(t *testing.T) {
	text := "\ufeff# comment\r\n\r\nA=1\r\nexport B = two words # comment\nC='a # b $X \\n'\nD=\"line\\nnext\\t\\\"q\\\" \\$X\" # c\nE=\nF=\"two\nlines\"\nG=a#b\nH=x=y\nI=#c\n  J=\"\"\nexported=1\nA=last"
	want := []variable{
		{"A", "1", 3}, {"B", "two words", 4}, {"C", `a # b $X \n`, 5}, {"D", "line\nnext\t\"q\" $X", 6}, {"E", "", 7}, {"F", "two\nlines", 8},
		{"G", "a#b", 10}, {"H", "x=y", 11}, {"I", "", 12}, {"J", "", 13}, {"exported", "1", 14}, {"A", "last", 15},
	}
	got, err := parseEnvFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d variables: %v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("variable %d is %v and not %v", i, got[i], want[i])
		}
	}
	for text, want := range map[string]string{
		"A=1\nnothing": "line 2: is not NAME=value", "1A=x": "line 1: what stands before = is not the name of a variable",
		"A=\"x": "line 1: a quote is not closed", "\nA='x' y": "line 2: text after the closing quote", "=x": "line 1: what stands before = is not the name of a variable",
	} {
		if _, err := parseEnvFile(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v and not %s", text, err, want)
		}
	}
}
