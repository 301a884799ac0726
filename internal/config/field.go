package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field is one key of an object that becomes a T: how it is read, shown and documented.
type field[T any] struct {
	key     string
	typ     string // for the reference
	doc     string // one line for the reference
	example string // a JSON value that is good and not the default
	def     string // for the reference, where the default is not simply a value
	read    func(r *reader, at place, n *node, dst *T)
	// value is what is in force, for the reference and the effective configuration. nil hides the key.
	value func(src *T) any
	// show writes what value cannot say: nested objects and secrets.
	show func(s *shower, canon, key string, src *T)
}

func fieldOf[T any](fields []field[T], key string) *field[T] {
	i := slices.IndexFunc(fields, func(f field[T]) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

func fieldKeys[T any](fields []field[T]) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.key
	}
	return out
}

// check looks at a value and gives a complaint, or "". Complaints do not repeat the value, which may be a secret.
type check func(string) string

func textField[T any](key, doc, example string, at func(*T) *string, checks ...check) field[T] {
	return field[T]{
		key: key, typ: "string", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			s, ok := r.text(here, n)
			if ok && r.passes(here, n, s, checks) {
				*at(dst) = s
			}
		},
		value: func(src *T) any { return *at(src) },
	}
}

func (r *reader) passes(at place, n *node, s string, checks []check) bool {
	for _, c := range checks {
		if complaint := c(s); complaint != "" {
			r.mistake(at, n.line, "%s", complaint)
			return false
		}
	}
	return true
}

func textsField[T any](key, doc, example string, at func(*T) *[]string, checks ...check) field[T] {
	return field[T]{
		key: key, typ: "list of strings", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			all, ok := r.texts(here, n, r.text)
			for i, s := range all {
				ok = ok && r.passes(here.index(i), n.items[i], s, checks)
			}
			if ok {
				*at(dst) = all
			}
		},
		value: func(src *T) any { return *at(src) },
	}
}

func boolField[T any](key, doc, example string, at func(*T) *bool) field[T] {
	return field[T]{
		key: key, typ: "boolean", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			const what = "true or false"
			s, ok := r.literal(here, n, kindBool, what)
			if ok && s != "true" && s != "false" {
				r.want(here, n, what)
				return
			}
			if ok {
				*at(dst) = s == "true"
			}
		},
		value: func(src *T) any { return *at(src) },
	}
}

func intField[T any, I int | int64](key, doc, example string, low, high I, at func(*T) *I) field[T] {
	return field[T]{
		key: key, typ: "whole number", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			s, ok := r.literal(here, n, kindNumber, "a whole number")
			if !ok {
				return
			}
			i, err := strconv.ParseInt(s, 10, 64)
			switch {
			case err != nil:
				r.mistake(here, n.line, "must be a whole number")
			case i < int64(low) || i > int64(high):
				r.mistake(here, n.line, "must be from %d to %d", low, high)
			default:
				*at(dst) = I(i)
			}
		},
		value: func(src *T) any { return int64(*at(src)) },
	}
}

func factorField[T any](key, doc, example string, at func(*T) *float64) field[T] {
	return field[T]{
		key: key, typ: "number", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			s, ok := r.literal(here, n, kindNumber, "a number")
			if !ok {
				return
			}
			f, err := strconv.ParseFloat(s, 64)
			if err != nil || f < 1 || f > 100 || math.IsNaN(f) {
				r.mistake(here, n.line, "must be a number from 1 to 100")
				return
			}
			*at(dst) = f
		},
		value: func(src *T) any { return *at(src) },
	}
}

// durationField reads a Go duration of at least least.
func durationField[T any](key, doc, example string, least time.Duration, at func(*T) *time.Duration) field[T] {
	return field[T]{
		key: key, typ: "duration", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			if n.kind == kindNumber {
				r.mistake(here, n.line, "is a bare number; a duration has a unit, for example %q", n.text+"s")
				return
			}
			s, ok := r.text(here, n)
			if !ok {
				return
			}
			d, err := time.ParseDuration(s)
			switch {
			case err != nil:
				r.mistake(here, n.line, `%q is not a duration; write for example "30s", "1m30s" or "500ms"`, n.text)
			case d < least:
				r.mistake(here, n.line, "must be at least %s", durationText(least))
			default:
				*at(dst) = d
			}
		},
		value: func(src *T) any { return *at(src) },
	}
}

// durationText is a duration without zero parts at its end: 2m and not 2m0s.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// choiceField reads one word of a closed set. later are words that another version will know.
func choiceField[T any, E ~string](key, doc, example string, at func(*T) *E, known []E, later ...string) field[T] {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	return field[T]{
		key: key, typ: "`" + strings.Join(words, "`, `") + "`", doc: doc, example: example,
		read: func(r *reader, here place, n *node, dst *T) {
			s, ok := r.text(here, n)
			switch {
			case !ok:
			case slices.Contains(words, s):
				*at(dst) = E(s)
			case slices.Contains(later, s):
				r.mistake(here, n.line, "this version does not support %q yet; known are %s", s, strings.Join(words, ", "))
			default:
				p := r.mistake(here, n.line, "%q is not known; known are %s", n.text, strings.Join(words, ", "))
				p.Suggestion = suggest(n.text, words)
			}
		},
		value: func(src *T) any { return string(*at(src)) },
	}
}

// groupField reads a nested object by its own table.
func groupField[T, S any](key, doc, example string, fields []field[S], at func(*T) *S, later ...string) field[T] {
	return field[T]{
		key: key, typ: "object", doc: doc, example: example, def: "see below",
		read: func(r *reader, here place, n *node, dst *T) { readFields(r, here, n, fields, at(dst), later...) },
		show: func(s *shower, canon, key string, src *T) {
			showGroup(s, canon, key, fields, at(src))
		},
	}
}
