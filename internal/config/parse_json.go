package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(text []byte) (*node, []fault) {
	// The parser wants a line comment to end with a newline, also at the end of the text.
	if at, deep := tooDeep(text); deep {
		return nil, []fault{{pos: posOf(text, at), msg: fmt.Sprintf("is nested deeper than %d levels", maxTreeDepth)}}
	}
	whole := bytes.TrimRight(text, " \t\r\n")
	text = append(bytes.Clone(text), '\n')
	v, err := hujson.Parse(text)
	if err != nil {
		f := jsonFault(err)
		if end := posOf(whole, len(whole)); f.line > end.line {
			f.pos = end
		}
		return nil, []fault{f}
	}
	j := jsonTree{text: text, starts: lineStarts(text)}
	root := j.value(&v, "", 0)
	return root, j.faults
}

// tooDeep finds brackets that open more than maxTreeDepth levels, before the parser follows them down its stack. Within
// strings and comments brackets do not count.
func tooDeep(text []byte) (offset int, deep bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '/':
			i += commentLength(text[i:])
		case '{', '[':
			if depth++; depth > maxTreeDepth {
				return i, true
			}
		case '}', ']':
			depth--
		}
	}
	return 0, false
}

// commentLength is the length of the comment that text begins with, without its last byte; 0 for none.
func commentLength(text []byte) int {
	var end string
	switch {
	case bytes.HasPrefix(text, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(text, []byte("/*")):
		end = "*/"
	default:
		return 0
	}
	if i := bytes.Index(text[2:], []byte(end)); i >= 0 {
		return 2 + i + len(end) - 1
	}
	return len(text)
}

var (
	jsonErrorAt = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)
	badLiteral  = regexp.MustCompile(`(?s)^invalid literal: (.?).*`)
)

// jsonFault takes the place out of the parser's message. What stands there is not repeated: it may be a secret.
func jsonFault(err error) fault {
	msg := err.Error()
	f := fault{}
	if m := jsonErrorAt.FindStringSubmatch(msg); m != nil {
		f.line, _ = strconv.Atoi(m[1])
		f.col, _ = strconv.Atoi(m[2])
	}
	if inner := errors.Unwrap(err); inner != nil {
		msg = inner.Error()
	}
	if m := badLiteral.FindStringSubmatch(msg); m != nil {
		msg = "this word is neither true, false, null nor a number; strings stand in double quotes"
		if m[1] == `"` {
			msg = `this string is not valid JSON: it holds a line break or control character, or a backslash that is not doubled (C:\\dir)`
		}
	}
	if what, early := strings.CutSuffix(msg, ": "+io.ErrUnexpectedEOF.Error()); early {
		msg = "the text ends too early, while " + what
	}
	f.msg = msg
	return f
}

// jsonTree converts the syntax tree of the parser into ours.
type jsonTree struct {
	tree
	text   []byte
	starts []int // offsets at which the lines begin
}

func lineStarts(text []byte) []int {
	starts := []int{0}
	for i, c := range text {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func (j *jsonTree) pos(offset int) pos {
	line := sort.SearchInts(j.starts, offset+1)
	return pos{line, 1 + utf8.RuneCount(j.text[j.starts[line-1]:offset])}
}

func (j *jsonTree) value(v *hujson.Value, path string, depth int) *node {
	n := &node{pos: j.pos(v.StartOffset)}
	if !j.room(n.pos, path, depth) {
		return n
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindObject
		seen := keys{}
		for i := range v.Members {
			j.member(n, seen, &v.Members[i], path, depth)
		}
	case *hujson.Array:
		n.kind = kindList
		for i := range v.Elements {
			n.items = append(n.items, j.value(&v.Elements[i], path+"["+strconv.Itoa(i)+"]", depth+1))
		}
	case hujson.Literal:
		n.kind, n.text = literal(v)
	}
	return n
}

func (j *jsonTree) member(n *node, seen keys, m *hujson.ObjectMember, path string, depth int) {
	_, key := literal(m.Name.Value.(hujson.Literal))
	at := j.pos(m.Name.StartOffset)
	if !seen.add(&j.tree, path, key, at) {
		return
	}
	n.members = append(n.members, member{key: key, pos: at, value: j.value(&m.Value, joinPath(path, key), depth+1)})
}

func literal(l hujson.Literal) (nodeKind, string) {
	switch l.Kind() {
	case '"':
		return kindString, l.String()
	case 't', 'f':
		return kindBool, string(l)
	case '0':
		return kindNumber, string(l)
	default:
		return kindNull, ""
	}
}
