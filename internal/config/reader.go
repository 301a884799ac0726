package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// reader walks the tree once and collects values, problems and notes.
type reader struct {
	file     string // as messages call it
	exp      *expander
	id       string // of the entry being read; empty elsewhere
	noStdio  bool   // no program may be started
	lax      bool   // within a disabled entry, where a missing variable hurts nobody
	problems []Problem
	notes    []Note
	origins  map[string]origin // by canonical path
}

// origin is where a value came from.
type origin struct {
	file string
	line int
	from []string // what references were replaced by
	raw  string   // the string before replacement
}

func (o origin) String() string {
	parts := o.from
	if o.file != "" {
		parts = append([]string{fmt.Sprintf("%s:%d", o.file, o.line)}, o.from...)
	}
	return strings.Join(parts, ", ")
}

// mistake records an error. Within a server entry it concerns that server only.
func (r *reader) mistake(at place, line int, format string, args ...any) *Problem {
	r.problems = append(r.problems, Problem{
		Severity: SeverityError, File: r.file, Line: line, Path: at.path, Msg: fmt.Sprintf(format, args...),
		Server: r.id, Stops: r.id == "", order: line,
	})
	return &r.problems[len(r.problems)-1]
}

// refuse records an error that stops the start wherever it is.
func (r *reader) refuse(at place, line int, format string, args ...any) *Problem {
	p := r.mistake(at, line, format, args...)
	p.Stops = true
	return p
}

func (r *reader) warn(at place, line int, format string, args ...any) {
	p := r.mistake(at, line, format, args...)
	p.Severity, p.Stops = SeverityWarning, false
}

func (r *reader) note(at place, line int, format string, args ...any) {
	r.notes = append(r.notes, Note{File: r.file, Line: line, Path: at.path, Msg: fmt.Sprintf(format, args...), Server: r.id})
}

// want reports a value of another kind than expected.
func (r *reader) want(at place, n *node, what string) {
	r.mistake(at, n.line, "must be %s, not %s", what, n.kind)
}

func (r *reader) isObject(at place, n *node) bool {
	if n.kind != kindObject {
		r.want(at, n, "an object")
		return false
	}
	return true
}

// text reads a string and replaces the references in it. It reports its own mistakes.
func (r *reader) text(at place, n *node) (string, bool) {
	if n.kind != kindString {
		r.want(at, n, "a string")
		return "", false
	}
	e := r.exp.expand(n.text)
	r.origins[at.canon] = origin{r.file, n.line, e.from, n.text}
	if e.odd {
		r.warn(at, n.line, "holds a ${...} of a form that is not replaced; it stays as written, and $${ says that this is meant")
	}
	for _, missing := range e.missing {
		if r.lax {
			r.warn(at, n.line, "%s", missing)
			continue
		}
		r.mistake(at, n.line, "%s", missing)
	}
	return e.text, len(e.missing) == 0
}

// loose reads a string, or a number or boolean as the text it was written as: values of env and args are often bare.
func (r *reader) loose(at place, n *node) (string, bool) {
	if n.kind == kindNumber || n.kind == kindBool {
		r.origins[at.canon] = origin{file: r.file, line: n.line, raw: n.text}
		return n.text, true
	}
	return r.text(at, n)
}

// json gives any value as compact JSON, with the references in its strings replaced. The strings have no paths of their
// own in messages: the key and the line are enough to find them.
func (r *reader) json(at place, n *node) (json.RawMessage, bool) {
	good := true
	whole := origin{file: r.file, line: n.line}
	value := n.appendJSON(nil, func(s *node) string {
		text, ok := r.text(at, s)
		good = good && ok
		whole.from = append(whole.from, r.origins[at.canon].from...)
		return text
	})
	r.origins[at.canon] = whole
	return value, good
}

// literal gives the text of a number or boolean. A string is good too when it comes from a variable.
func (r *reader) literal(at place, n *node, want nodeKind, what string) (string, bool) {
	if n.kind == want {
		return n.text, true
	}
	if n.kind == kindString && strings.Contains(n.text, "${") {
		return r.text(at, n)
	}
	r.want(at, n, what)
	return "", false
}

// texts reads a list of strings; loose lets numbers and booleans be strings.
func (r *reader) texts(at place, n *node, read func(place, *node) (string, bool)) ([]string, bool) {
	if n.kind != kindList {
		r.want(at, n, "a list of strings")
		return nil, false
	}
	out, good := make([]string, 0, len(n.items)), true
	for i, item := range n.items {
		here := at.index(i)
		here.path = at.index(i + n.skipped).path
		s, ok := read(here, item)
		out, good = append(out, s), good && ok
	}
	return out, good
}

// textMap reads an object of strings and calls put for each; null values are as good as absent.
func (r *reader) textMap(at place, n *node, put func(at place, m member, value string)) {
	if !r.isObject(at, n) {
		return
	}
	for _, m := range n.members {
		if m.value.kind == kindNull {
			continue
		}
		here := at.member(m)
		if s, ok := r.loose(here, m.value); ok {
			put(here, m, s)
		}
	}
}

// readFields reads an object by its table. later are keys that another version will know.
func readFields[T any](r *reader, at place, n *node, fields []field[T], dst *T, later ...string) {
	if !r.isObject(at, n) {
		return
	}
	for _, m := range n.members {
		here := at.member(m)
		f := fieldOf(fields, m.key)
		if f == nil {
			r.unknownKey(here, m, fieldKeys(fields), later)
			continue
		}
		// null is what YAML makes of a key with nothing behind it: the default holds.
		if m.value.kind == kindNull {
			continue
		}
		r.origins[here.canon] = origin{file: r.file, line: m.value.line, raw: m.value.text}
		f.read(r, here, m.value, dst)
	}
}

// unknownKey is fatal wherever it stands: a setting without effect is worse than no start.
func (r *reader) unknownKey(at place, m member, known, later []string) {
	for _, k := range later {
		if m.key == k {
			r.refuse(at, m.line, "this version does not support this setting yet")
			return
		}
	}
	p := r.refuse(at, m.line, "unknown key")
	if p.Suggestion = suggest(m.key, known); p.Suggestion == "" {
		p.Suggestion = m.meant
	}
	if p.Suggestion == "" && len(known) <= 12 {
		p.Msg += "; known are " + strings.Join(known, ", ")
	}
}
