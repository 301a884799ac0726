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
	whole, fraction, dotted := bytes.Cut(tok, []byte("."))
	if dotted && (len(fraction) == 0 || len(bytes.Trim(fraction, "0")) > 0) {
		return nil, false
	}
	digits := bytes.TrimPrefix(whole, []byte("-"))
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return nil, false
	}
	for _, c := range digits {
		if !isDigit(c) {
			return nil, false
		}
	}
	if digits[0] == '0' {
		return digits, true // -0 is 0
	}
	return whole, true
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
