package wire

import "math"

// Span is a half-open range of bytes within a message. The zero Span means that there is nothing.
type Span struct{ Start, End int }

// Ok says whether there is something.
func (s Span) Ok() bool { return s.End > s.Start }

func (s Span) len() int { return s.End - s.Start }

// Of is the part of raw that s covers, nil when s is absent. It shares raw's memory but cannot grow into it.
func (s Span) Of(raw []byte) []byte {
	if !s.Ok() {
		return nil
	}
	return raw[s.Start:s.End:s.End]
}

// Member is one name with its value. Key includes its quotes; Name is set only when the key holds escapes.
type Member struct {
	Key, Value Span
	Name       string
}

// bare is the key without its quotes, escapes as they stand.
func (m *Member) bare(raw []byte) []byte { return raw[m.Key.Start+1 : m.Key.End-1] }

// is says whether the decoded name of the member is name.
func (m *Member) is(raw []byte, name string) bool {
	if m.Name != "" {
		return m.Name == name
	}
	return string(m.bare(raw)) == name
}

// name is the decoded name.
func (m *Member) name(raw []byte) string {
	if m.Name != "" {
		return m.Name
	}
	return string(m.bare(raw))
}

// Object is a JSON object whose own members are known. Span covers the braces.
type Object struct {
	Span
	Members []Member
}

// Get is the value of the member with exactly that decoded name; the last one when there are several.
func (o *Object) Get(raw []byte, name string) Span {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].is(raw, name) {
			return o.Members[i].Value
		}
	}
	return Span{}
}

// Has says whether there is a member with exactly that decoded name.
func (o *Object) Has(raw []byte, name string) bool { return o.Get(raw, name).Ok() }

// ObjectAt finds the members, one level deep, of an object at s in JSON that was validated before. It is false when
// there is no object.
func ObjectAt(raw []byte, s Span) (Object, bool) {
	var o Object
	sc, ok := scannerAt(raw, s)
	if !ok || sc.peek(s.Start) != '{' || sc.object(s.Start, 1, &o) != s.End {
		return Object{}, false
	}
	o.Span = s
	return o, true
}

// Elements finds the elements of an array at arr in JSON that was validated before. It is nil when there is no array
// or nothing in it.
func Elements(raw []byte, arr Span) []Span {
	sc, ok := scannerAt(raw, arr)
	if !ok || sc.peek(arr.Start) != '[' {
		return nil
	}
	i := sc.blank(arr.Start + 1)
	if sc.peek(i) == ']' {
		return nil
	}
	var list []Span
	for {
		end := sc.value(i, 2)
		if end < 0 {
			return nil
		}
		list = append(list, Span{i, end})
		i = sc.blank(end)
		switch sc.peek(i) {
		case ']':
			return list
		case ',':
			i = sc.blank(i + 1)
		default:
			return nil
		}
	}
}

// scannerAt prepares the scanning of the part of raw before s.End.
func scannerAt(raw []byte, s Span) (scanner, bool) {
	if !s.Ok() || s.Start < 0 || s.End > len(raw) {
		return scanner{}, false
	}
	return scanner{raw: raw[:s.End], maxDepth: depthCeiling, maxMembers: math.MaxInt}, true
}
