package wire

// Span is a half-open range of bytes within a message. The zero Span means that there is nothing.
type Span struct{ Start, End int }

// Ok says whether there is something.
func (s Span) Ok() bool { return s.End > s.Start }

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

// is says whether the decoded name of the member is name.
func (m *Member) is(raw []byte, name string) bool {
	if m.Name != "" {
		return m.Name == name
	}
	return string(raw[m.Key.Start+1:m.Key.End-1]) == name
}

// name is the decoded name.
func (m *Member) name(raw []byte) string {
	if m.Name != "" {
		return m.Name
	}
	return string(raw[m.Key.Start+1 : m.Key.End-1])
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
