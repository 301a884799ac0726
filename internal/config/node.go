package config

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// nodeKind is what a value is, whichever syntax it was written in.
type nodeKind uint8

const (
	kindNull nodeKind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

var kindNames = [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}

func (k nodeKind) String() string { return kindNames[k] }

// pos is a place in the text; line and column count from 1.
type pos struct{ line, col int }

// node is one value of the file. JSON and YAML both become this tree, so that there is one schema walk.
type node struct {
	kind nodeKind
	// text is the content of a string, and of a number or boolean the JSON literal exactly as written.
	text string
	pos
	items []*node
	// skipped counts the items that the file has before ours in the same list.
	skipped int
	members []member
}

// member is one key of an object. The order of the file is kept.
type member struct {
	key string
	// written is how the file spells it, relative to the object, where that is not key.
	written string
	// hoisted is set when the file has this member one level further out than we keep it.
	hoisted bool
	// meant is another client's spelling that an unknown key is close to, or "".
	meant string
	pos
	value *node
}

func (n *node) get(key string) *member {
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

// isEmpty is true for null, {} and [].
func (n *node) isEmpty() bool {
	return n.kind == kindNull || n.kind == kindObject && len(n.members) == 0 || n.kind == kindList && len(n.items) == 0
}

// appendJSON writes the value as compact JSON; numbers stay as they were written. Strings go through str.
func (n *node) appendJSON(b []byte, str func(*node) string) []byte {
	switch n.kind {
	case kindNull:
		return append(b, "null"...)
	case kindBool, kindNumber:
		return append(b, n.text...)
	case kindString:
		return appendQuoted(b, str(n))
	case kindList:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b, str)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, m.key), ':')
			b = m.value.appendJSON(b, str)
		}
		return append(b, '}')
	}
}

// appendQuoted writes a JSON string, which is also a YAML string.
func appendQuoted(b []byte, s string) []byte {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}

func quoted(s string) string { return string(appendQuoted(nil, s)) }

// place says where a value stands, as messages spell it (path) and in our own keys (canon). up is the path one level out.
type place struct{ path, canon, up string }

func (p place) member(m member) place {
	path := joinPath(p.path, m.key)
	switch {
	case m.hoisted:
		path = joinRaw(p.up, m.written)
	case m.written != "":
		path = joinRaw(p.path, m.written)
	}
	return place{path: path, canon: joinPath(p.canon, m.key), up: p.path}
}

func (p place) index(i int) place {
	at := "[" + strconv.Itoa(i) + "]"
	return place{path: p.path + at, canon: p.canon + at, up: p.path}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$-]+$`)

func joinPath(path, key string) string {
	if !plainKey.MatchString(key) {
		return path + "[" + quoted(key) + "]"
	}
	return joinRaw(path, key)
}

func joinRaw(path, rest string) string {
	if path == "" || strings.HasPrefix(rest, "[") {
		return path + rest
	}
	return path + "." + rest
}
