package pins

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Difference is one member in which two definitions differ. A text is JSON, or empty where the member is not there.
type Difference struct {
	Path     string // as in inputSchema.properties.path.description
	Old, New string
}

const (
	// diffDepth is how deep differences are told apart; what lies deeper is compared as a whole.
	diffDepth = 8
	maxPath   = 200
)

// Diff tells in what two definitions differ, in the order of what people look at first. Either may be empty.
func Diff(before, after []byte) []Difference {
	var out []Difference
	old, now := parse(before), parse(after)
	for _, name := range judged {
		out = appendDiff(out, name, old.all(name), now.all(name), diffDepth)
	}
	return out
}

func parse(text []byte) object {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, _ := readValue(dec, maxDepth)
	obj, _ := v.(object)
	return obj
}

// all gives the values of a member, of which there is rarely more than one.
func (o object) all(name string) (out []any) {
	for _, m := range o {
		if m.name == name {
			out = append(out, m.value)
		}
	}
	return out
}

// appendDiff compares the values that stand under one path.
func appendDiff(out []Difference, path string, old, now []any, depth int) []Difference {
	a, b := texts(old), texts(now)
	if a == b {
		return out
	}
	x, okX := soleObject(old)
	y, okY := soleObject(now)
	if depth == 0 || !okX || !okY {
		return append(out, Difference{cut(path, maxPath), a, b})
	}
	before := len(out)
	for _, name := range names(x, y) {
		out = appendDiff(out, path+"."+name, x.all(name), y.all(name), depth-1)
	}
	if len(out) == before {
		out = append(out, Difference{cut(path, maxPath), a, b})
	}
	return out
}

func soleObject(values []any) (object, bool) {
	if len(values) != 1 {
		return nil, false
	}
	obj, ok := values[0].(object)
	return obj, ok
}

// texts writes values; more than one as a member that stands twice would be read.
func texts(values []any) string {
	var b []byte
	for i, v := range values {
		if i > 0 {
			b = append(b, " and again "...)
		}
		b = appendValue(b, v)
	}
	return string(b)
}

// names are those of both objects, sorted and each once.
func names(x, y object) []string {
	var out []string
	for _, m := range slices.Concat(x, y) {
		out = append(out, m.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxMembers bounds how many members are named of one change.
const maxMembers = 10

// Members names the members that differ, without their texts.
func Members(diff []Difference) []string {
	out := make([]string, 0, min(len(diff), maxMembers+1))
	for i, d := range diff {
		if i == maxMembers {
			return append(out, strconv.Itoa(len(diff)-maxMembers)+" more")
		}
		out = append(out, d.Path)
	}
	return out
}

// cut shortens a text at a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
