package wire

import (
	"encoding/binary"
	"math/bits"
)

// depthCeiling bounds MaxDepth, because the scanner recurses and its stack must stay small whatever is configured.
const depthCeiling = 10_000

// scanner validates JSON by the grammar of RFC 8259 and never writes. It knows nothing of UTF-8: that is checked
// beforehand, in one fast pass over the whole message. Its methods take the index at which something begins and return
// the index after it, or -1 after having noted the failure.
type scanner struct {
	raw        []byte
	maxDepth   int
	maxMembers int
	frame      *Frame // whose Top, Body and Meta are filled on the way; nil when only an extent is wanted
	untidy     bool   // line breaks were met
	crowded    int    // where the first member stands that was one too many; 0 when none was

	reason   string // of the failure
	at       int
	expected string
}

// fail notes why scanning stopped; of malformed JSON, what should have stood there.
func (s *scanner) fail(reason string, at int, expected string) int {
	s.reason, s.at, s.expected = reason, min(at, len(s.raw)), expected
	return -1
}

func (s *scanner) bad(at int, expected string) int { return s.fail(ReasonInvalidJSON, at, expected) }

// peek is the byte at i, or 0, which is not part of any JSON text, past the end.
func (s *scanner) peek(i int) byte {
	if i < len(s.raw) {
		return s.raw[i]
	}
	return 0
}

// blank skips blanks.
func (s *scanner) blank(i int) int {
	if i < len(s.raw) && s.raw[i] > ' ' {
		return i
	}
	return s.blanks(i)
}

func (s *scanner) blanks(i int) int {
	for ; i < len(s.raw); i++ {
		switch s.raw[i] {
		case ' ', '\t':
		case '\n', '\r':
			s.untidy = true
		default:
			return i
		}
	}
	return i
}

func (s *scanner) value(i, depth int) int {
	switch s.peek(i) {
	case '"':
		end, _ := s.text(i + 1)
		return end
	case '{':
		return s.object(i, depth, nil)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	}
	return s.number(i)
}

// object scans an object and notes its members in o unless o is nil.
func (s *scanner) object(i, depth int, o *Object) int {
	if depth > s.maxDepth {
		return s.fail(ReasonTooDeep, i, "")
	}
	i = s.blank(i + 1)
	if s.peek(i) == '}' {
		return i + 1
	}
	for {
		if s.peek(i) != '"' {
			return s.bad(i, "a member name in quotes")
		}
		key := Span{Start: i}
		end, escaped := s.text(i + 1)
		if end < 0 {
			return -1
		}
		key.End = end
		if i = s.blank(end); s.peek(i) != ':' {
			return s.bad(i, "':'")
		}
		i = s.blank(i + 1)
		if o == nil {
			i = s.value(i, depth+1)
		} else {
			i = s.member(o, key, escaped, i, depth+1)
		}
		if i < 0 {
			return -1
		}
		i = s.blank(i)
		switch s.peek(i) {
		case '}':
			return i + 1
		case ',':
			i = s.blank(i + 1)
		default:
			return s.bad(i, "',' or '}'")
		}
	}
}

func (s *scanner) array(i, depth int) int {
	if depth > s.maxDepth {
		return s.fail(ReasonTooDeep, i, "")
	}
	i = s.blank(i + 1)
	if s.peek(i) == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return -1
		}
		i = s.blank(i)
		switch s.peek(i) {
		case ']':
			return i + 1
		case ',':
			i = s.blank(i + 1)
		default:
			return s.bad(i, "',' or ']'")
		}
	}
}

// text scans the rest of a string, from after its opening quote, and says whether there were escapes.
func (s *scanner) text(i int) (end int, escaped bool) {
	for {
		i = plainEnd(s.raw, i)
		switch s.peek(i) {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = s.escape(i + 1); i < 0 {
				return -1, true
			}
		default:
			return s.bad(i, "a closing quote (control characters in strings must be escaped)"), escaped
		}
	}
}

func (s *scanner) escape(i int) int {
	switch s.peek(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for k := 1; k <= 4; k++ {
			if !isHex(s.peek(i + k)) {
				return s.bad(i+k, "a hexadecimal digit")
			}
		}
		return i + 5
	}
	return s.bad(i, "an escape such as \\n or \\u0000")
}

func isHex(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func (s *scanner) literal(i int, want string) int {
	end := i + len(want)
	if end > len(s.raw) || string(s.raw[i:end]) != want {
		return s.bad(i, want)
	}
	return end
}

func (s *scanner) number(i int) int {
	first := i
	if s.peek(i) == '-' {
		i++
	}
	switch c := s.peek(i); {
	case c == '0':
		i++
	case isDigit(c):
		i = s.digits(i)
	case i == first:
		return s.bad(i, "a value")
	default:
		return s.bad(i, "a digit")
	}
	if s.peek(i) == '.' {
		if i = s.someDigits(i + 1); i < 0 {
			return -1
		}
	}
	if s.peek(i)|0x20 != 'e' {
		return i
	}
	i++
	if c := s.peek(i); c == '+' || c == '-' {
		i++
	}
	return s.someDigits(i)
}

func (s *scanner) someDigits(i int) int {
	if !isDigit(s.peek(i)) {
		return s.bad(i, "a digit")
	}
	return s.digits(i)
}

func (s *scanner) digits(i int) int {
	for i < len(s.raw) && isDigit(s.raw[i]) {
		i++
	}
	return i
}

// plainEnd is the index of the first quote, backslash or control byte from i on, len(b) when there is none.
// It looks at eight bytes at a time; strings make up most of what passes here.
func plainEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// special sets the high bit of each byte of x that is a quote, a backslash or below 0x20. The lowest set bit is
// exact; a borrow can only set bits above it wrongly.
func special(x uint64) uint64 {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & high
}
