package wire

import (
	"bytes"
	"math"
	"strconv"
)

// ValidID says whether a token of a validated message may be the id of a request: a string, or a number that is an
// integer and written as one. 1.0 counts, a fraction or an exponent does not; any size will do.
func ValidID(tok []byte) bool {
	if len(tok) >= 2 && tok[0] == '"' {
		return tok[len(tok)-1] == '"'
	}
	_, ok := integer(tok)
	return ok
}

// integer is a number token without the zero fraction it may have; false when it is anything but an integer.
func integer(tok []byte) ([]byte, bool) {
	first := 0
	if len(tok) > 0 && tok[0] == '-' {
		first = 1
	}
	end := first
	for end < len(tok) && isDigit(tok[end]) {
		end++
	}
	if end == first || tok[first] == '0' && end > first+1 || !isZeroFraction(tok[end:]) {
		return nil, false
	}
	if tok[first] == '0' {
		return tok[end-1 : end], true // -0 is 0
	}
	return tok[:end], true
}

// isZeroFraction says whether b is empty or a point and zeros.
func isZeroFraction(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	return len(b) > 1 && b[0] == '.' && len(bytes.Trim(b[1:], "0")) == 0
}

// IDKey turns the token of a valid id into a key that is equal for equal ids however they are written ("A" and
// "\u0041", 1 and 1.0) and different for all others, a number and a string of the same digits included.
func IDKey(tok []byte) string {
	if len(tok) < 2 || tok[0] != '"' {
		if n, ok := integer(tok); ok {
			return string(n)
		}
		return string(tok)
	}
	bare := tok[1 : len(tok)-1]
	if bytes.IndexByte(bare, '\\') < 0 {
		return string(tok[:len(tok)-1])
	}
	return string(appendDecoded([]byte{'"'}, bare, keepLone))
}

// AppendUpstreamID appends the id under which a request goes to an upstream.
func AppendUpstreamID(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// ParseUpstreamID reads back what AppendUpstreamID wrote. Some servers answer a number as a string or with a zero
// fraction, so "17" and 17.0 are 17 as well.
func ParseUpstreamID(tok []byte) (uint64, bool) {
	if len(tok) >= 2 && tok[0] == '"' && tok[len(tok)-1] == '"' {
		tok = tok[1 : len(tok)-1]
	}
	if len(tok) == 0 || tok[0] == '-' {
		return 0, false
	}
	digits, ok := integer(tok)
	if !ok {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
