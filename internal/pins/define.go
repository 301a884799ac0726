package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// judged are the members of a tool that an approval is about: what a model reads, and what says how the tool is called.
// Others, such as _meta and icons, may change without one.
var judged = []string{"name", "title", "description", "annotations", "inputSchema", "outputSchema"}

// Definition is what an approval of a tool is about, in one spelling: members sorted, no white space, strings and names as
// they are without needless escapes, and the order of "required" left out, since it means nothing. Members that stand
// twice are kept, so nothing can hide behind another.
type Definition struct {
	Hash string // SHA-256 of Text, in hexadecimal
	Text []byte
}

var (
	errNotATool = errors.New("not a JSON object")
	errTooDeep  = errors.New("nested too deeply")
)

// maxDepth is more than any message may be nested.
const maxDepth = 10_000

// Define reads a tool as it stands in a list.
func Define(tool []byte) (Definition, error) {
	dec := json.NewDecoder(bytes.NewReader(tool))
	dec.UseNumber()
	v, err := readValue(dec, maxDepth)
	if err != nil {
		return Definition{}, fmt.Errorf("the definition of a tool: %w", err)
	}
	obj, ok := v.(object)
	if !ok {
		return Definition{}, errNotATool
	}
	obj = slices.DeleteFunc(obj, func(m member) bool { return !slices.Contains(judged, m.name) })
	text := appendValue(nil, obj)
	sum := sha256.Sum256(text)
	return Definition{Hash: hex.EncodeToString(sum[:]), Text: text}, nil
}

// object is a JSON object with its members in the order of their names; equal names keep their order.
type object []member

type member struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

// readValue reads one value that is nested no deeper than depth.
func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth == 0 {
		return nil, errTooDeep
	}
	t, err := dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return readObject(dec, depth-1)
	case json.Delim('['):
		return readArray(dec, depth-1)
	}
	return t, nil
}

func readObject(dec *json.Decoder, depth int) (any, error) {
	obj := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		v, err := readValue(dec, depth)
		if err != nil {
			return nil, err
		}
		if all, ok := v.([]any); ok && name == "required" {
			sortStrings(all)
		}
		obj = append(obj, member{name, v})
	}
	slices.SortStableFunc(obj, func(a, b member) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	_, err := dec.Token()
	return obj, err
}

func readArray(dec *json.Decoder, depth int) (any, error) {
	all := []any{}
	for dec.More() {
		v, err := readValue(dec, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	_, err := dec.Token()
	return all, err
}

// sortStrings sorts a list that holds nothing but strings.
func sortStrings(all []any) {
	for _, v := range all {
		if _, ok := v.(string); !ok {
			return
		}
	}
	slices.SortFunc(all, func(a, b any) int { return bytes.Compare([]byte(a.(string)), []byte(b.(string))) })
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			b = appendValue(b, m.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	}
	plain, _ := json.Marshal(v) // a number, a boolean or null, which never fail
	return append(b, plain...)
}

func appendString(b []byte, s string) []byte {
	special := func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }
	if strings.IndexFunc(s, special) < 0 {
		return append(append(append(b, '"'), s...), '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string never fails
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
