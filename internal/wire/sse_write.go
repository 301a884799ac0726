package wire

// AppendEvent appends one server-sent event. Name and id are left out when empty; data is always written, so that an
// event without data still carries its id. Line breaks, which valid messages never hold, become spaces: one would end
// the line and let the data pass for another field.
func AppendEvent(dst []byte, name, id string, data []byte) []byte {
	if name != "" {
		dst = appendField(dst, "event: ", name)
	}
	if id != "" {
		dst = appendField(dst, "id: ", id)
	}
	return append(appendField(dst, "data: ", data), '\n')
}

// AppendComment appends a comment, which readers skip. It keeps a stream alive that has nothing to say.
func AppendComment(dst []byte, text string) []byte {
	return append(appendField(dst, ": ", text), '\n')
}

func appendField[T string | []byte](dst []byte, field string, value T) []byte {
	dst = append(dst, field...)
	from := len(dst)
	dst = append(dst, value...)
	for i, c := range dst[from:] {
		if c == '\n' || c == '\r' {
			dst[from+i] = ' '
		}
	}
	return append(dst, '\n')
}
