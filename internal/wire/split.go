package wire

import (
	"bytes"
	"fmt"
)

// SplitValues finds the objects and arrays on a line that is not one plain message: several messages in a row, or
// a message after a log prefix, terminal colours or a progress display. At most maxValues are returned, as parts of
// line; rest is everything else, without the blanks, for the log. Nothing is taken from inside a value that is broken
// or nested too deep, because that may be text that a client sent.
func SplitValues(line []byte, maxValues int) (values [][]byte, rest []byte) {
	s := scanner{raw: line, maxDepth: depthCeiling}
	noise := 0 // where the bytes begin that belong to no value
	for i := 0; i < len(line) && len(values) < maxValues; {
		next := bytes.IndexAny(line[i:], "{[")
		if next < 0 {
			break
		}
		i += next
		end := s.value(i, 1)
		switch {
		case end >= 0:
			rest = append(rest, trimNoise(line[noise:i])...)
			values = append(values, line[i:end:end])
			i, noise = end, end
		case s.reason == ReasonTooDeep:
			i = len(line)
		default:
			i = max(i+1, s.at)
		}
	}
	return values, append(rest, trimNoise(line[noise:])...)
}

// trimNoise drops what surrounds noise without meaning: blanks, other control bytes and a byte order mark.
func trimNoise(b []byte) []byte {
	b = bytes.TrimPrefix(b, []byte("\uFEFF"))
	return bytes.TrimFunc(b, func(r rune) bool { return r <= ' ' && r != '\x1b' })
}

// IsBatch says whether raw is, or at least begins like, an array of messages.
func IsBatch(raw []byte) bool {
	raw = trim(raw)
	return len(raw) > 0 && raw[0] == '['
}

// SplitBatch takes an array of messages apart. The parts share the memory of raw but cannot grow into one another, so
// each may be given to Parse. The error is a *ParseError: when raw is not an array, is empty, has more than maxItems
// elements or one that is not an object.
func SplitBatch(raw []byte, maxItems int) ([][]byte, error) {
	raw = trim(raw)
	s := scanner{raw: raw, maxDepth: depthCeiling}
	if end := s.value(0, 1); end < 0 {
		return nil, s.failure()
	} else if end < len(raw) {
		s.bad(end, "the end of the message")
		return nil, s.failure()
	}
	if raw[0] != '[' {
		return nil, newParseError(ReasonInvalidShape, 0, "message: it is not an array of messages")
	}
	items := Elements(raw, Span{0, len(raw)})
	switch {
	case len(items) == 0:
		return nil, newParseError(ReasonInvalidShape, 0, "message: the array is empty; put at least one message in it")
	case len(items) > maxItems:
		return nil, newParseError(ReasonTooManyMembers, items[maxItems].Start,
			fmt.Sprintf("message: the array holds more than %d messages; send fewer at a time", maxItems))
	}
	parts := make([][]byte, len(items))
	for i, item := range items {
		if raw[item.Start] != '{' {
			return nil, newParseError(ReasonNotAnObject, item.Start,
				fmt.Sprintf("message[%d]: it is not an object; send only JSON-RPC messages", i))
		}
		parts[i] = item.Of(raw)
	}
	return parts, nil
}
