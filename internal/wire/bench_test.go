package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// benchMessage is a tool result of about size bytes whose text is prose with some escapes, or numbers and short
// strings when dense.
func benchMessage(size int, dense bool) []byte {
	head := `{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"`
	tail := `"}],"isError":false}}`
	unit := `The quick brown fox jumps over the lazy dog, and then it does so once more.\n`
	if dense {
		head, tail = `{"jsonrpc":"2.0","id":17,"result":{"structuredContent":[{}`, `],"isError":false}}`
		unit = `,{"id":12345,"name":"ab","ok":true,"list":[1,2.5,null]}`
	}
	n := max(0, size-len(head)-len(tail)) / len(unit)
	return []byte(head + strings.Repeat(unit, n) + tail)
}

func benchSizes(b *testing.B, run func(b *testing.B, raw []byte)) {
	for _, dense := range []bool{false, true} {
		for _, size := range []int{100, 1 << 10, 64 << 10, 1 << 20} {
			raw := benchMessage(size, dense)
			b.Run(fmt.Sprintf("dense=%v/bytes=%d", dense, size), func(b *testing.B) {
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				run(b, raw)
			})
		}
	}
}

func BenchmarkParseInto(b *testing.B) {
	benchSizes(b, func(b *testing.B, raw []byte) {
		var f Frame
		for b.Loop() {
			if err := ParseInto(&f, raw, Upstream, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkValid is the yardstick: encoding/json validates only, and neither checks UTF-8 nor finds anything.
func BenchmarkValid(b *testing.B) {
	benchSizes(b, func(b *testing.B, raw []byte) {
		for b.Loop() {
			if !json.Valid(raw) {
				b.Fatal("not valid")
			}
		}
	})
}

func BenchmarkParseRequest(b *testing.B) {
	raw := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"gh__search","arguments":{"q":"x"}}}`)
	var f Frame
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if err := ParseInto(&f, raw, Downstream, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseNonASCII(b *testing.B) {
	raw := []byte(`{"jsonrpc":"2.0","id":17,"result":{"text":"` + strings.Repeat("Быстрая бурая лиса 素早い茶色の狐 ", 1200) + `"}}`)
	var f Frame
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if err := ParseInto(&f, raw, Upstream, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPatch(b *testing.B) {
	raw := []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"gh__search","arguments":{"q":"x"},"_meta":{"progressToken":3}}}`)
	f, err := Parse(raw, Downstream, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	id, name := []byte("99"), []byte(`"search"`)
	var p Patch
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		p.Reset(f.Raw)
		p.Replace(f.ID, id)
		p.Replace(f.Body.Get(f.Raw, "name"), name)
		p.Replace(f.Meta.Get(f.Raw, "progressToken"), id)
		dst = p.Append(dst[:0])
	}
}

func BenchmarkEventReader(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		event := AppendEvent(nil, "message", "1", benchMessage(size, false))
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			r := NewEventReader(&repeater{data: event}, 1<<20)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeater reads the same bytes over and over.
type repeater struct {
	data []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}
