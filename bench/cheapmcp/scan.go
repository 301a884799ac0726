package cheapmcp

import "bytes"

// members walks the members of one JSON object without decoding them. It
// checks only as much as it needs to find where a value ends: the requests it
// reads come from the load client or from a proxy that has validated them.
type members struct {
	text []byte
	pos  int
	// failed is set when the text is not an object as far as it was read.
	failed bool
}

// membersOf starts a walk over text, which must begin with an object.
func membersOf(text []byte) members {
	m := members{text: text}
	m.space()
	if !m.take('{') {
		m.failed = true
	}
	return m
}

// next gives the next member: its name without the quotes, escapes left as
// they are, and the bytes of its value. ok is false at the end and on failure.
func (m *members) next() (name, value []byte, ok bool) {
	if m.failed {
		return nil, nil, false
	}
	m.space()
	if m.take('}') {
		return nil, nil, false
	}
	m.take(',')
	m.space()
	name = m.value()
	if len(name) < 2 || name[0] != '"' {
		m.failed = true
		return nil, nil, false
	}
	m.space()
	if !m.take(':') {
		m.failed = true
		return nil, nil, false
	}
	m.space()
	value = m.value()
	if len(value) == 0 {
		m.failed = true
		return nil, nil, false
	}
	return name[1 : len(name)-1], value, true
}

func (m *members) space() {
	for m.pos < len(m.text) {
		switch m.text[m.pos] {
		case ' ', '\t', '\r', '\n':
			m.pos++
		default:
			return
		}
	}
}

func (m *members) take(c byte) bool {
	if m.pos < len(m.text) && m.text[m.pos] == c {
		m.pos++
		return true
	}
	return false
}

// value returns the bytes of the value at the current position and moves
// behind it; empty when there is none or it does not end.
func (m *members) value() []byte {
	start := m.pos
	if start == len(m.text) {
		return nil
	}
	end := start
	switch m.text[start] {
	case '"':
		end = stringEnd(m.text, start)
	case '{', '[':
		end = nestedEnd(m.text, start)
	default:
		for end < len(m.text) && bytes.IndexByte([]byte(",}] \t\r\n"), m.text[end]) < 0 {
			end++
		}
	}
	if end < 0 {
		m.pos = len(m.text)
		return nil
	}
	m.pos = end
	return m.text[start:end]
}

// stringEnd returns the index behind the string that begins at start, or -1.
func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// nestedEnd returns the index behind the object or array that begins at start,
// or -1.
func nestedEnd(text []byte, start int) int {
	depth := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			if end < 0 {
				return -1
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
