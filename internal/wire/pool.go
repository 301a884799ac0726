package wire

import "sync"

// Buffers and frames are used over and over: a large answer otherwise costs more in allocation than in scanning. What is
// given back must not be used any more by anybody; what is never given back is merely collected.

// bufferSizes are the sizes that are kept. What is larger is not.
var bufferSizes = [...]int{1 << 10, 8 << 10, 72 << 10, 320 << 10, 1<<20 + 64<<10}

var bufferPools [len(bufferSizes)]sync.Pool

// GetBuffer gives a buffer of that length, of any content.
func GetBuffer(n int) []byte {
	for i, size := range bufferSizes {
		if n <= size {
			if b, ok := bufferPools[i].Get().(*[]byte); ok {
				return (*b)[:n]
			}
			return make([]byte, n, size)
		}
	}
	return make([]byte, n)
}

// PutBuffer gives a buffer back.
func PutBuffer(b []byte) {
	for i := len(bufferSizes) - 1; i >= 0; i-- {
		if cap(b) >= bufferSizes[i] {
			if i < len(bufferSizes)-1 || cap(b) < 2*bufferSizes[i] {
				b = b[:0]
				bufferPools[i].Put(&b)
			}
			return
		}
	}
}

var framePool = sync.Pool{New: func() any { return new(Frame) }}

// GetFrame gives a frame for ParseInto.
func GetFrame() *Frame { return framePool.Get().(*Frame) }

// PutFrame gives a frame back, with the bytes of its message.
func PutFrame(f *Frame) {
	PutBuffer(f.Raw)
	f.Raw = nil
	framePool.Put(f)
}
