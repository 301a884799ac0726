package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are powers of 1024, the short names too: that is what people mean by them for memory.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

var errNoSize = errors.New(`is not a size; write for example "512MiB" or "2GiB"`)

// parseSize reads a whole number with or without a unit.
func parseSize(s string) (int64, error) {
	digits := strings.TrimSpace(s)
	unit := int64(1)
	if i := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); i >= 0 {
		name := strings.TrimSpace(digits[i:])
		digits, unit = digits[:i], 0
		for _, u := range sizeUnits {
			if strings.EqualFold(u.name, name) {
				unit = u.bytes
				break
			}
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || unit == 0 || n > math.MaxInt64/unit {
		return 0, errNoSize
	}
	return n * unit, nil
}

// sizeText is a size in the largest unit that leaves it whole.
func sizeText(n int64) string {
	for _, u := range sizeUnits[:4] {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// String is the size as the configuration would write it.
func (l ChildLimits) String() string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, "limits.memory "+sizeText(l.Memory))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("limits.pids %d", l.Pids))
	}
	return strings.Join(parts, ", ")
}

// sizeField is a size of at least least, or 0.
func sizeField[T any](key, doc, example string, least int64, at func(*T) *int64) field[T] {
	return field[T]{
		key: key, typ: "size", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			s := n.text
			if n.kind != kindNumber {
				var ok bool
				if s, ok = r.text(here, n); !ok {
					return
				}
			}
			size, err := parseSize(s)
			switch {
			case err != nil:
				r.mistake(here, n.line, "%v", err)
			case size != 0 && size < least:
				r.mistake(here, n.line, "must be at least %s", sizeText(least))
			default:
				*at(dst) = size
			}
		},
		value: func(src *T) any { return sizeText(*at(src)) },
	}
}
