package wire

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeString is the text of a JSON string token, quotes included. An escaped surrogate without its partner becomes
// U+FFFD. It is false when tok is not a valid string token.
func DecodeString(tok []byte) (string, bool) {
	if !isStringToken(tok) {
		return "", false
	}
	bare := tok[1 : len(tok)-1]
	if plainEnd(bare, 0) == len(bare) {
		return string(bare), true
	}
	return string(appendDecoded(make([]byte, 0, len(bare)), bare, utf8.RuneError)), true
}

// isStringToken says whether tok is exactly one valid string.
func isStringToken(tok []byte) bool {
	if len(tok) < 2 || tok[0] != '"' || !utf8.Valid(tok) {
		return false
	}
	s := scanner{raw: tok}
	end, _ := s.text(1)
	return end == len(tok)
}

// keepLone tells appendDecoded to keep lone surrogates apart, in the three bytes that UTF-8 would have for them.
const keepLone = -1

// appendDecoded appends the text of a valid string without its quotes; lone stands for surrogates without a partner.
func appendDecoded(dst, bare []byte, lone rune) []byte {
	for i := 0; i < len(bare); {
		end := plainEnd(bare, i)
		dst = append(dst, bare[i:end]...)
		if end == len(bare) {
			break
		}
		i = end + 2
		switch c := bare[end+1]; c {
		case 'b', 'f', 'n', 'r', 't':
			dst = append(dst, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		case 'u':
			r := hex4(bare[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				pair := utf8.RuneError
				if i+6 <= len(bare) && bare[i] == '\\' && bare[i+1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(bare[i+2:]))
				}
				if pair != utf8.RuneError {
					i += 6
				}
				dst = appendSurrogate(dst, r, pair, lone)
				continue
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendSurrogate(dst []byte, r, pair, lone rune) []byte {
	switch {
	case pair != utf8.RuneError:
		return utf8.AppendRune(dst, pair)
	case lone == keepLone:
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, lone)
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		d := rune(c | 0x20)
		if isDigit(c) {
			d = rune(c) - '0'
		} else {
			d -= 'a' - 10
		}
		r = r<<4 | d
	}
	return r
}

// AppendString appends s as a JSON string. Quotes, backslashes and control characters are escaped, and so are U+2028
// and U+2029, at which some readers end a line; invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				dst = append(dst, s[done:i]...)
				dst = appendEscape(dst, c)
				done = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && n == 1 {
			dst = append(dst, s[done:i]...)
			dst = append(dst, `\u`...)
			dst = append(dst, hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			done = i + n
		}
		i += n
	}
	return append(append(dst, s[done:]...), '"')
}

const hexDigits = "0123456789abcdef"

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
