package load

import "bytes"

// lastEvent returns the data of the last event of an event stream that has
// any, which on the stream of a POST is the answer.
func lastEvent(stream []byte) []byte {
	var last, current []byte
	for len(stream) > 0 {
		line, rest, _ := bytes.Cut(stream, []byte("\n"))
		stream = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			if len(current) > 0 {
				last = current
			}
			current = nil
			continue
		}
		data, isData := bytes.CutPrefix(line, []byte("data:"))
		if !isData {
			continue
		}
		data = bytes.TrimPrefix(data, []byte(" "))
		if current == nil {
			current = data[:len(data):len(data)]
		} else {
			current = append(append(current, '\n'), data...)
		}
	}
	return last
}
