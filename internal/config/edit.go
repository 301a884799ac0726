package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// ErrNoObject means that a file of settings holds something else where an object is to be.
var ErrNoObject = errors.New("it is no object")

// ErrThere means that a file of settings in TOML has the table already.
var ErrThere = errors.New("the file has such a table already, with other values")

// SetEntry puts an entry into an object of a file of settings in JSON, which may have comments, in place of one of the
// same name. All other bytes stay as they are. An empty text is an empty object. changed is false where the entry is there
// already.
func SetEntry(text []byte, object, name string, entry json.RawMessage) (out []byte, changed bool, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, false, err
	}
	if old := v.Find(pointer(object, name)); old != nil && sameJSON(old, entry) {
		return text, false, nil
	}
	if err := setMember(&v, "", object, nil); err != nil {
		return nil, false, err
	}
	if err := setMember(&v, pointer(object), name, entry); err != nil {
		return nil, false, err
	}
	return v.Pack(), true, nil
}

// setMember sets a member of the object at a pointer; a nil value is an object that is made where it is missing.
func setMember(v *hujson.Value, at, name string, value json.RawMessage) error {
	object, ok := v.Find(at).Value.(*hujson.Object)
	if !ok {
		return fmt.Errorf("%s: %w", strings.TrimPrefix(at, "/"), ErrNoObject)
	}
	if count(object, name) > 1 {
		return fmt.Errorf("%s: it is there more than once", name)
	}
	if value == nil {
		if v.Find(at+pointer(name)) != nil {
			return nil
		}
		value = json.RawMessage("{}")
	}
	before := len(object.Members)
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": at + pointer(name), "value": value}})
	if err != nil {
		return err
	}
	if err := v.Patch(patch); err != nil {
		return err
	}
	if len(object.Members) > before { // a line of its own
		depth := strings.Count(at, "/")
		object.Members[before].Name.BeforeExtra = hujson.Extra("\n" + strings.Repeat("  ", depth+1))
		if !bytes.ContainsRune(object.AfterExtra, '\n') {
			object.AfterExtra = hujson.Extra("\n" + strings.Repeat("  ", depth))
		}
	}
	return nil
}

// count tells how often an object has a member.
func count(o *hujson.Object, name string) (n int) {
	for _, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() == name {
			n++
		}
	}
	return n
}

// pointer is the JSON pointer of members (RFC 6901).
func pointer(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(n))
	}
	return b.String()
}

// sameJSON says whether a value, comments apart, is the same as an entry.
func sameJSON(v *hujson.Value, entry json.RawMessage) bool {
	plain := v.Clone()
	plain.Standardize()
	var a, b any
	return json.Unmarshal(plain.Pack(), &a) == nil && json.Unmarshal(entry, &b) == nil && reflect.DeepEqual(a, b)
}

// AddTable adds a table to a file of settings in TOML, at its end; all other bytes stay as they are. values are strings
// and arrays of strings. changed is false where it is there already; one of the same name with other values is ErrThere.
func AddTable(text []byte, table, name string, values map[string]any) (out []byte, changed bool, err error) {
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, false, err
	}
	entry, err := toml.Marshal(map[string]any{table: map[string]any{name: values}})
	if err != nil {
		return nil, false, err
	}
	tables, _ := all[table].(map[string]any)
	if old, ok := tables[name]; ok {
		var fresh map[string]any
		if err := toml.Unmarshal(entry, &fresh); err != nil {
			return nil, false, err
		}
		if reflect.DeepEqual(old, fresh[table].(map[string]any)[name]) {
			return text, false, nil
		}
		return nil, false, ErrThere
	}
	out = slices.Clone(text)
	if len(out) > 0 {
		out = append(bytes.TrimRight(out, "\n"), "\n\n"...)
	}
	// The parent's own header would be a second one.
	out = append(out, bytes.Replace(entry, []byte("["+table+"]\n"), nil, 1)...)
	if err := toml.Unmarshal(out, &all); err != nil { // such as the table written in one line
		return nil, false, fmt.Errorf("a table cannot be added to it: %w", err)
	}
	return out, true, nil
}

// ServersIn gives the servers that a client's file of settings names, each with its raw entry.
func ServersIn(text []byte, object string, isTOML bool) (map[string]json.RawMessage, error) {
	var raw []byte
	if isTOML {
		var all map[string]any
		if err := toml.Unmarshal(text, &all); err != nil {
			return nil, err
		}
		b, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		raw = b
	} else {
		b, err := hujson.Standardize(text)
		if err != nil {
			return nil, err
		}
		raw = b
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, err
	}
	servers := map[string]json.RawMessage{}
	if top[object] == nil {
		return servers, nil
	}
	if err := json.Unmarshal(top[object], &servers); err != nil {
		return nil, fmt.Errorf("%s: %w", object, ErrNoObject)
	}
	return servers, nil
}
