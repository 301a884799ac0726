package testmcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Raw is one JSON value kept as the bytes it came in. A nil Raw means "not there".
type Raw []byte

// At walks into objects (string steps) and arrays (int steps) and gives the bytes found there, untouched.
// It gives nil where the path leads nowhere. Of equal member names the last counts.
func (r Raw) At(path ...any) Raw {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			r = Raw(r.Members()[s])
		case int:
			items := r.Items()
			if s < 0 || s >= len(items) {
				return nil
			}
			r = items[s]
		default:
			panic("testmcp: a path step is a string or an int")
		}
	}
	return r
}

// Members gives the members of an object; nil for anything else.
func (r Raw) Members() map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(r, &m) != nil {
		return nil
	}
	return m
}

// Items gives the elements of an array; nil for anything else.
func (r Raw) Items() []Raw {
	var list []json.RawMessage
	if json.Unmarshal(r, &list) != nil {
		return nil
	}
	out := make([]Raw, len(list))
	for i, v := range list {
		out[i] = Raw(v)
	}
	return out
}

// Keys gives the member names of an object in the order they stand, repeated ones repeated.
func (r Raw) Keys() []string {
	dec := json.NewDecoder(bytes.NewReader(r))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return keys
		}
		keys = append(keys, k.(string))
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return keys
		}
	}
	return keys
}

// Str gives the value of a JSON string; "" for anything else.
func (r Raw) Str() string {
	var s string
	if json.Unmarshal(r, &s) != nil {
		return ""
	}
	return s
}

// Int gives the value of a JSON integer; 0 for anything else.
func (r Raw) Int() int {
	n, err := strconv.Atoi(strings.TrimSpace(string(r)))
	if err != nil {
		return 0
	}
	return n
}

// Has says whether the path leads to a value; null is one.
func (r Raw) Has(path ...any) bool { return r.At(path...) != nil }

// String gives the bytes as text, so that %s in a failed test shows the JSON.
func (r Raw) String() string { return string(r) }

// Quote gives s as a JSON string without escaping <, > and &.
func Quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// withMember gives the object with one member put first, unless it has that member already.
// Every other byte stays as it is.
func withMember(object, name, value string) string {
	body := strings.TrimSpace(object)
	if body == "" {
		body = "{}"
	}
	if body[0] != '{' || Raw(body).Has(name) {
		return object
	}
	rest := strings.TrimLeft(body[1:], " \t\r\n")
	if rest != "}" {
		rest = "," + rest
	}
	return "{" + Quote(name) + ":" + value + rest
}

// withMeta gives params with members put first into its _meta object, which is made where there is none.
func withMeta(params, members string) string {
	if members == "" {
		return params
	}
	old := strings.TrimSpace(string(Raw(params).At("_meta")))
	if !strings.HasPrefix(old, "{") {
		return withMember(params, "_meta", "{"+members+"}")
	}
	rest := strings.TrimLeft(old[1:], " \t\r\n")
	if rest != "}" {
		rest = "," + rest
	}
	return strings.Replace(params, old, "{"+members+rest, 1)
}
