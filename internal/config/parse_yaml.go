package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parseYAML reads one YAML document.
func parseYAML(text []byte) (*node, []fault) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, []fault{yamlFault(err)}
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, []fault{{pos: pos{second.Line, second.Column}, msg: "is a second document; a configuration is one"}}
	case !errors.Is(err, io.EOF):
		return nil, []fault{yamlFault(err)}
	}
	y := yamlTree{}
	root := y.value(&doc, "", 0)
	return root, y.faults
}

var yamlErrorAt = regexp.MustCompile(`(?s)^(?:go-yaml load error|yaml:).*?\b(?:at |line )(\d+)(?::(\d+))?: `)

// yamlFault takes place and reason out of the parser's error.
func yamlFault(err error) fault {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		f := fault{pos: pos{le.Mark.Line, le.Mark.Column}, msg: le.Message}
		if le.ContextMsg != "" && le.ContextMark.Line > 0 {
			f.msg += " " + le.ContextMsg + " that begins in line " + strconv.Itoa(le.ContextMark.Line)
		}
		return f
	}
	f := fault{msg: err.Error()}
	if m := yamlErrorAt.FindStringSubmatch(f.msg); m != nil {
		f.line, _ = strconv.Atoi(m[1])
		f.col, _ = strconv.Atoi(m[2])
		f.msg = f.msg[len(m[0]):]
	}
	return f
}

// yamlTree converts the parser's nodes into ours and follows aliases and merge keys.
type yamlTree struct{ tree }

func (y *yamlTree) value(v *yaml.Node, path string, depth int) *node {
	n := &node{pos: pos{v.Line, v.Column}}
	// An alias inside its own anchor has no end; the bounds stop it.
	if !y.room(n.pos, path, depth) {
		return n
	}
	switch v.Kind {
	case yaml.DocumentNode:
		return y.value(v.Content[0], path, depth)
	case yaml.AliasNode:
		return y.value(v.Alias, path, depth+1)
	case yaml.SequenceNode:
		n.kind = kindList
		for i, item := range v.Content {
			n.items = append(n.items, y.value(item, path+"["+strconv.Itoa(i)+"]", depth+1))
		}
	case yaml.MappingNode:
		n.kind = kindObject
		y.mapping(n, v, path, depth)
	case yaml.ScalarNode:
		y.scalar(n, v, path)
	}
	return n
}

func (y *yamlTree) mapping(n *node, v *yaml.Node, path string, depth int) {
	seen := keys{}
	var merged []*node
	for i := 0; i+1 < len(v.Content); i += 2 {
		k, value := v.Content[i], v.Content[i+1]
		for k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		at := pos{k.Line, k.Column}
		switch {
		case k.Kind != yaml.ScalarNode:
			y.fail(at, path, "has a key that is not a string")
		case k.ShortTag() == "!!merge":
			merged = append(merged, y.value(value, joinPath(path, k.Value), depth+1))
		case seen.add(&y.tree, path, k.Value, at):
			n.members = append(n.members, member{key: k.Value, pos: at, value: y.value(value, joinPath(path, k.Value), depth+1)})
		}
	}
	for _, m := range merged {
		y.merge(n, m, path, seen)
	}
}

// merge adds what "<<" brings: keys of the mapping itself win, then those of earlier mappings.
func (y *yamlTree) merge(n, from *node, path string, seen keys) {
	switch from.kind {
	case kindObject:
		for _, m := range from.members {
			if _, given := seen[m.key]; !given {
				seen[m.key] = m.pos
				n.members = append(n.members, m)
			}
		}
	case kindList:
		for _, item := range from.items {
			y.merge(n, item, path, seen)
		}
	default:
		y.fail(from.pos, path, "has a merge key << that names no mapping")
	}
}

func (y *yamlTree) scalar(n *node, v *yaml.Node, path string) {
	n.text = v.Value
	switch v.ShortTag() {
	case "!!null":
		n.kind, n.text = kindNull, ""
	case "!!bool":
		n.kind, n.text = kindBool, strings.ToLower(v.Value)
	case "!!int", "!!float":
		text, ok := jsonNumber(v.Value)
		if !ok {
			y.fail(n.pos, path, "is a number that JSON cannot write; put it in quotes")
		}
		n.kind, n.text = kindNumber, text
	default:
		n.kind = kindString
	}
}

// jsonNumber gives the JSON spelling of a YAML number. What is JSON already stays to the digit.
func jsonNumber(s string) (string, bool) {
	if json.Valid([]byte(s)) {
		return s, true
	}
	plain := strings.ReplaceAll(s, "_", "")
	if i, ok := new(big.Int).SetString(strings.TrimPrefix(plain, "+"), 0); ok {
		return i.String(), true
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		return "0", false
	}
	b, err := json.Marshal(f) // fails for infinities and for what is no number
	if err != nil {
		return "0", false
	}
	return string(b), true
}
