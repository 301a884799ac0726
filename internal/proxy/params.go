package proxy

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// paramHeader is an argument that modern HTTP repeats in a header: a property annotated with x-mcp-header, reached by
// properties alone (2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
type paramHeader struct {
	name string
	path []string
}

// maxParamDepth bounds how deep annotations are looked for.
const maxParamDepth = 16

// paramHeaders finds the valid annotations of an input schema.
func paramHeaders(schema []byte) []paramHeader {
	var out []paramHeader
	seen := map[string]bool{}
	collectParams(schema, nil, func(p paramHeader) {
		if key := strings.ToLower(p.name); !seen[key] && isToken(p.name) {
			seen[key] = true
			out = append(out, p)
		}
	})
	return out
}

func collectParams(schema []byte, path []string, found func(paramHeader)) {
	if len(path) > maxParamDepth {
		return
	}
	root, ok := wire.ObjectAt(schema, wire.Span{End: len(schema)})
	if !ok {
		return
	}
	if name, ok := wire.DecodeString(root.Get(schema, "x-mcp-header").Of(schema)); ok && len(path) > 0 {
		switch t, _ := wire.DecodeString(root.Get(schema, "type").Of(schema)); t {
		case "string", "integer", "boolean":
			found(paramHeader{name, path})
		}
	}
	props := root.Get(schema, "properties")
	obj, ok := wire.ObjectAt(schema, props)
	if !ok {
		return
	}
	for _, m := range obj.Members {
		key, ok := wire.DecodeString(m.Key.Of(schema))
		if ok {
			collectParams(m.Value.Of(schema), append(path[:len(path):len(path)], key), found)
		}
	}
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// value finds the argument; false where it is absent, null, or no plain value.
func (p paramHeader) value(args []byte) (string, bool) {
	v := args
	for _, name := range p.path {
		obj, ok := wire.ObjectAt(v, wire.Span{End: len(v)})
		if !ok {
			return "", false
		}
		v = obj.Get(v, name).Of(v)
	}
	if len(v) == 0 || v[0] == '{' || v[0] == '[' || string(v) == "null" {
		return "", false
	}
	if v[0] == '"' {
		return wire.DecodeString(v)
	}
	return string(v), true
}

// headersFor computes the headers that an upstream wants for these arguments.
func headersFor(params []paramHeader, args []byte) []upstream.Param {
	var out []upstream.Param
	for _, p := range params {
		if v, ok := p.value(args); ok {
			out = append(out, upstream.Param{Name: p.name, Value: v})
		}
	}
	return out
}

// checkHeaders compares what a client repeats in headers with the arguments.
func checkHeaders(params []paramHeader, args []byte, header func(string) (string, bool)) error {
	for _, p := range params {
		want, present := p.value(args)
		got, ok := header("Mcp-Param-" + p.name)
		switch {
		case present && !ok:
			return fmt.Errorf("the header Mcp-Param-%s is missing or malformed; it must repeat the argument %q", p.name, strings.Join(p.path, "."))
		case !present && got != "":
			return fmt.Errorf("the header Mcp-Param-%s is there, but the argument %q is not", p.name, strings.Join(p.path, "."))
		case present && !sameValue(got, want):
			return fmt.Errorf("the header Mcp-Param-%s says %q and the argument %q something else", p.name, got, strings.Join(p.path, "."))
		}
	}
	return nil
}

// sameValue compares a header with an argument, integers by their value.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	// Only plain decimals: exponents could stand for numbers of any length.
	if len(a) > 64 || len(b) > 64 || strings.ContainsFunc(a+b, func(r rune) bool { return !strings.ContainsRune("-.0123456789 ", r) }) {
		return false
	}
	x, ok1 := new(big.Rat).SetString(strings.TrimSpace(a))
	y, ok2 := new(big.Rat).SetString(strings.TrimSpace(b))
	return ok1 && ok2 && x.Cmp(y) == 0
}
