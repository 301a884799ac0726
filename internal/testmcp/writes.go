package testmcp

import (
	"bytes"
	"io"
	"sync"
)

// frameWriter puts frames on a writer in the manner of a script, one at a time.
type frameWriter struct {
	mu   sync.Mutex
	w    io.Writer
	form func(n int, frame []byte) []byte // Server.Write
	n    int
}

func (f *frameWriter) frame(frame []byte, _ *Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := append(bytes.Clone(frame), '\n')
	if f.form != nil {
		b = f.form(f.n, frame)
	}
	f.n++
	_, _ = f.w.Write(b) // the reader may be gone, which is its affair
}

func (f *frameWriter) raw(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.w.Write(b)
}

// Ready-made values of Server.Write.

// EndingWith ends each frame with these bytes, such as " \n" or "\r\n".
func EndingWith(end string) func(int, []byte) []byte {
	return func(_ int, frame []byte) []byte { return append(bytes.Clone(frame), end...) }
}

// Banner puts bytes before the first frame: a line of noise, or a byte order mark.
func Banner(text string) func(int, []byte) []byte {
	return func(n int, frame []byte) []byte {
		if n == 0 {
			return []byte(text + string(frame) + "\n")
		}
		return append(bytes.Clone(frame), '\n')
	}
}

// NoiseBeforeEach puts bytes before each frame.
func NoiseBeforeEach(text string) func(int, []byte) []byte {
	return func(_ int, frame []byte) []byte { return []byte(text + string(frame) + "\n") }
}

// Twice sends each answer two times.
func Twice(_ int, frame []byte) []byte {
	line := append(bytes.Clone(frame), '\n')
	if parseMessage(frame).isAnswer() {
		return append(line, line...)
	}
	return line
}

// InArray puts each answer into an array of its own.
func InArray(_ int, frame []byte) []byte {
	if parseMessage(frame).isAnswer() {
		return []byte("[" + string(frame) + "]\n")
	}
	return append(bytes.Clone(frame), '\n')
}

// StringID gives each answer its numeric id as a string.
func StringID(_ int, frame []byte) []byte {
	m := parseMessage(frame)
	if m.isAnswer() && m.ID[0] != '"' {
		frame = bytes.Replace(frame, []byte(`"id":`+string(m.ID)), []byte(`"id":"`+string(m.ID)+`"`), 1)
	}
	return append(bytes.Clone(frame), '\n')
}

// ByteOrderMark is the UTF-8 BOM, for Banner.
const ByteOrderMark = "\uFEFF"
