package wire

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Parse scans a message. It takes over raw, in which line breaks between tokens become spaces. The error is
// always a *ParseError.
func Parse(raw []byte, side Side, lim Limits) (*Frame, error) {
	f := new(Frame)
	if err := ParseInto(f, raw, side, lim); err != nil {
		return nil, err
	}
	return f, nil
}

// ParseInto is Parse for a frame that has been in use before, so that its memory serves again. After an error the
// frame holds nothing of use.
func ParseInto(f *Frame, raw []byte, side Side, lim Limits) error {
	if lim.MaxDepth <= 0 {
		lim.MaxDepth = DefaultMaxDepth
	}
	if lim.MaxMembers <= 0 {
		lim.MaxMembers = DefaultMaxMembers
	}
	f.reset()
	f.Raw = trim(raw)
	if err := f.parse(side, lim); err != nil {
		err.ID = f.safeID()
		return err
	}
	return nil
}

func (f *Frame) parse(side Side, lim Limits) *ParseError {
	if !utf8.Valid(f.Raw) {
		if side == Downstream {
			return f.notUTF8(lim)
		}
		f.Raw, f.Repaired = bytes.ToValidUTF8(f.Raw, []byte("\uFFFD")), true
	}
	if err := f.scan(lim); err != nil {
		return err
	}
	if side == Downstream {
		return f.readStrict()
	}
	if changed := f.amend(); changed != nil {
		f.clear()
		f.Raw, f.Amended = changed, true
		if err := f.scan(lim); err != nil {
			return err
		}
	}
	return f.readLenient()
}

// notUTF8 reports the first byte that is not UTF-8. What stands before it is scanned all the same, for the id.
func (f *Frame) notUTF8(lim Limits) *ParseError {
	at := 0
	for at < len(f.Raw) {
		r, n := utf8.DecodeRune(f.Raw[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	f.Raw = f.Raw[:at]
	_ = f.scan(lim) // cannot succeed to any purpose: the message is cut
	return newParseError(ReasonInvalidUTF8, at, fmt.Sprintf("message: byte %d is not UTF-8; send JSON in UTF-8", at))
}

// reset makes the frame empty but keeps its memory.
func (f *Frame) reset() {
	f.Raw, f.Repaired, f.Amended = nil, false, false
	if f.Top.Members == nil {
		f.Top.Members, f.Body.Members, f.Meta.Members = f.top[:0], f.body[:0], f.meta[:0]
	}
	f.clear()
}

// clear forgets what was found in Raw.
func (f *Frame) clear() {
	f.Kind, f.Method = 0, ""
	f.ID, f.Params, f.Result, f.Error = Span{}, Span{}, Span{}, Span{}
	f.Top.empty()
	f.Body.empty()
	f.Meta.empty()
}

func (o *Object) empty() { o.Span, o.Members = Span{}, o.Members[:0] }

// scan validates all of Raw and fills Top, Body and Meta.
func (f *Frame) scan(lim Limits) *ParseError {
	s := scanner{raw: f.Raw, maxDepth: min(lim.MaxDepth, depthCeiling), maxMembers: lim.MaxMembers, frame: f}
	var end int
	object := s.peek(0) == '{'
	if object {
		end = s.object(0, 1, &f.Top)
	} else {
		end = s.value(0, 1)
	}
	if end >= 0 && end < len(f.Raw) {
		end = s.bad(end, "the end of the message")
	}
	switch {
	case end < 0:
		return s.failure()
	case !object:
		return newParseError(ReasonNotAnObject, 0, "message: it is not an object; send one JSON-RPC message")
	case s.crowded > 0:
		return newParseError(ReasonTooManyMembers, s.crowded,
			fmt.Sprintf("message: an object has more than %d members; send fewer", lim.MaxMembers))
	}
	f.Top.Span = Span{0, end}
	if s.untidy {
		tidy(f.Raw)
	}
	return nil
}

// member scans the value of a member of Top, Body or Meta, or of the one object that is asked for, and notes it.
func (s *scanner) member(o *Object, key Span, escaped bool, i, depth int) int {
	m := Member{Key: key}
	if escaped {
		m.Name, _ = DecodeString(key.Of(s.raw))
	}
	var end int
	if inner := s.inner(o, &m, i); inner != nil {
		inner.empty()
		end = s.object(i, depth, inner)
		inner.Span = Span{i, max(i, end)}
	} else {
		end = s.value(i, depth)
	}
	m.Value = Span{i, end}
	switch {
	case end < 0:
	case len(o.Members) < s.maxMembers:
		o.Members = append(o.Members, m)
	case s.crowded == 0:
		s.crowded = key.Start
	}
	return end
}

// inner says where the members of the value at i belong, nil when they are of no interest.
func (s *scanner) inner(o *Object, m *Member, i int) *Object {
	if s.frame == nil || s.peek(i) != '{' {
		return nil
	}
	switch o {
	case &s.frame.Top:
		if m.is(s.raw, "params") || m.is(s.raw, "result") || m.is(s.raw, "error") {
			s.frame.Meta.empty()
			return &s.frame.Body
		}
	case &s.frame.Body:
		if m.is(s.raw, "_meta") {
			return &s.frame.Meta
		}
	}
	return nil
}

// failure turns what stopped the scanner into an error.
func (s *scanner) failure() *ParseError {
	if s.reason == ReasonTooDeep {
		return newParseError(s.reason, s.at, fmt.Sprintf(
			"message: more than %d levels of objects and arrays at byte %d; nest less", s.maxDepth, s.at))
	}
	found := "the message ends"
	if s.at < len(s.raw) {
		found = fmt.Sprintf("it has %q", s.raw[s.at])
	}
	return newParseError(s.reason, s.at, fmt.Sprintf(
		"message: not valid JSON at byte %d: expected %s where %s", s.at, s.expected, found))
}

// trim drops a byte order mark and the blanks around a message.
func trim(raw []byte) []byte {
	const bom = "\uFEFF"
	raw = trimLeft(raw)
	if len(raw) >= len(bom) && string(raw[:len(bom)]) == bom {
		raw = trimLeft(raw[len(bom):])
	}
	for len(raw) > 0 && isBlank(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw
}

func trimLeft(raw []byte) []byte {
	for len(raw) > 0 && isBlank(raw[0]) {
		raw = raw[1:]
	}
	return raw
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// tidy makes every line break of a valid message a space. In valid JSON they stand between tokens only. There they are
// legal, but a line break also ends a message on stdio and a line of an event stream: passed on, it would let one message
// become two.
func tidy(raw []byte) {
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
}
