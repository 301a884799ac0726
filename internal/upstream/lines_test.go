package upstream

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// readLines reads everything, at most so many lines.
func readLines(t *testing.T, r io.Reader, limit int) (out []line) {
	t.Helper()
	l := newLineReader(r, limit)
	for {
		got, err := l.next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
	}
}

func TestLineReaderAroundItsBufferAndItsBound(t *testing.T) {
	t.Parallel()
	const limit = 3*readBuffer + 7
	var sizes []int
	for _, at := range []int{0, edgeBytes, readBuffer, 2 * readBuffer, 3 * readBuffer, limit, 4 * readBuffer} {
		for d := -2; d <= 2; d++ {
			if at+d >= 0 {
				sizes = append(sizes, at+d)
			}
		}
	}
	for _, size := range sizes {
		for _, end := range []string{"\n", "\r\n", ""} {
			text := strings.Repeat("ab", size)[:size]
			lines := readLines(t, strings.NewReader("first\n"+text+end+"\nlast\n"), limit)
			if end == "" {
				lines = readLines(t, strings.NewReader("first\n"+text+"\nlast"), limit)
			}
			checkLines(t, fmt.Sprintf("%d bytes and %q", size, end), lines, text, size > limit, end != "")
		}
	}
}

func checkLines(t *testing.T, what string, lines []line, text string, tooLong, blank bool) {
	t.Helper()
	want := 3
	if blank {
		want = 4 // the test puts one more end behind
	}
	if len(lines) != want {
		t.Errorf("%s: %d lines, want %d", what, len(lines), want)
		return
	}
	if string(lines[0].text) != "first" || string(lines[len(lines)-1].text) != "last" {
		t.Errorf("%s: the lines around are %q and %q", what, lines[0].text, lines[len(lines)-1].text)
	}
	got := lines[1]
	if got.tooLong != tooLong {
		t.Errorf("%s: too long is %v", what, got.tooLong)
		return
	}
	if !tooLong {
		if string(got.text) != text {
			t.Errorf("%s: the line has %d bytes and differs", what, len(got.text))
		}
		return
	}
	if !strings.HasPrefix(text, string(got.head)) || len(got.head) != edgeBytes {
		t.Errorf("%s: the head is %d bytes", what, len(got.head))
	}
	if !strings.HasSuffix(text, string(got.tail)) || len(got.tail) != edgeBytes {
		t.Errorf("%s: the tail is %d bytes", what, len(got.tail))
	}
}

// A line over a bound smaller than the buffer is too long as well.
func TestLineReaderWithASmallBound(t *testing.T) {
	lines := readLines(t, strings.NewReader("0123456789\n0123456789a\n{}\n0123456789abc"), 10)
	var got []string
	for _, l := range lines {
		if l.tooLong {
			got = append(got, "too long: "+string(l.head)+" "+string(l.tail))
			continue
		}
		got = append(got, string(l.text))
	}
	want := "0123456789|too long: 0123456789a 0123456789a|{}|too long: 0123456789abc 0123456789abc"
	if text := strings.ReplaceAll(strings.Join(got, "|"), "\n", ""); text != want {
		t.Errorf("got %q\nwant %q", text, want)
	}
}

func TestLineReaderDoesNotCareForPieces(t *testing.T) {
	t.Parallel()
	text := "one\n" + strings.Repeat("z", readBuffer+1) + "\nthree"
	for name, wrap := range map[string]func(io.Reader) io.Reader{"one byte": iotest.OneByteReader, "half": iotest.HalfReader, "data and error": iotest.DataErrReader} {
		lines := readLines(t, wrap(strings.NewReader(text)), 1<<20)
		var parts []string
		for _, l := range lines {
			parts = append(parts, string(l.text))
		}
		if strings.Join(parts, "\n") != text {
			t.Errorf("%s: got %d lines of another text", name, len(lines))
		}
	}
}

func TestLineReaderPassesErrorsOn(t *testing.T) {
	for _, size := range []int{0, 10, readBuffer + 10, 5 * readBuffer} {
		r := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(io.ErrUnexpectedEOF))
		l := newLineReader(r, 2*readBuffer)
		if _, err := l.next(); err != io.ErrUnexpectedEOF {
			t.Errorf("after %d bytes: %v", size, err)
		}
	}
}

func TestLinesAreTheReadersOwnNoLonger(t *testing.T) {
	lines := readLines(t, strings.NewReader("aaaa\nbbbb\n"+strings.Repeat("c", 2*readBuffer)+"\n"+strings.Repeat("d", 2*readBuffer)+"\n"), 1<<20)
	for i, want := range "abcd" {
		if c := lines[i].text; rune(c[0]) != want || rune(c[len(c)-1]) != want {
			t.Errorf("line %d begins with %q", i, c[:4])
		}
	}
}

func TestIDAtEdge(t *testing.T) {
	const fill = `"content":[{"type":"text","text":"………"}]`
	for _, c := range []struct {
		name, head, tail string
		want             uint64
	}{
		{"at the head", `{"jsonrpc":"2.0","id":12,"result":{` + fill, `}}`, 12},
		{"at the head, spaced", `{ "jsonrpc" : "2.0", "id" : 12 , "result":{`, `}}`, 12},
		{"at the head, a string", `{"id":"12","result":{`, `}}`, 12},
		{"at the tail", `{"jsonrpc":"2.0","result":{` + fill, `}]},"id":12}`, 12},
		{"at the tail, before the version", `{"result":{` + fill, `}]},"id":12,"jsonrpc":"2.0"}`, 12},
		{"at the tail, spaced", `{"result":{` + fill, `}]}, "id": 12 }`, 12},
		{"a deeper one at the head", `{"jsonrpc":"2.0","result":{"id":5,` + fill, `}}`, 0},
		{"a deeper one at the tail", `{"jsonrpc":"2.0","result":{` + fill, `"a":{"id":5}}}`, 0},
		{"a deeper one at the head and ours at the tail", `{"result":{"id":5,` + fill, `}},"id":12}`, 12},
		{"none", `{"result":{`, `}}`, 0},
		{"not ours", `{"id":"abc","result":{`, `}}`, 0},
		{"cut off", `{"id":1`, ``, 0},
		{"no JSON", `xxxxxxxx`, `yyyy`, 0},
	} {
		if got := idAtEdge(line{head: []byte(c.head), tail: []byte(c.tail)}); got != c.want {
			t.Errorf("%s: id %d, want %d", c.name, got, c.want)
		}
	}
}

func TestKindAtHead(t *testing.T) {
	for head, want := range map[string]wire.Kind{
		`{"jsonrpc":"2.0","id":1,"result":{"a`:                        wire.KindResponse,
		`  {"result" : {`:                                             wire.KindResponse,
		`{"error":{"code":1,"message":"`:                              wire.KindResponse,
		`{"jsonrpc":"2.0","method":"notifications/message","params":`: wire.KindRequest,
		`{"id":1,"params":{"result":{}},"method":"x"`:                 wire.KindRequest,
		`{"id":1,"params":{"result":{"a":"`:                           0,
		`{"note":"\"result\":","x":["result":`:                        0,
		`{"x":"result","y`:                                            0,
		`{"result`:                                                    0,
		`[{"result":1}`:                                               0,
		`"result":`:                                                   0,
		`debug: {"result":`:                                           0,
		``:                                                            0,
	} {
		if got := kindAtHead([]byte(head)); got != want {
			t.Errorf("%s: %v, want %v", head, got, want)
		}
	}
}

// The id of a line that is far too long is found at either end, wherever the buffer cuts it.
func TestIDOfALineOverTheBound(t *testing.T) {
	t.Parallel()
	const limit = 2 * readBuffer
	for cut := -30; cut <= 30; cut++ {
		big := strings.Repeat("x", 3*readBuffer+cut)
		for _, text := range []string{
			`{"jsonrpc":"2.0","id":4711,"result":{"t":"` + big + `"}}`,
			`{"jsonrpc":"2.0","result":{"t":"` + big + `"},"id":4711}`,
		} {
			lines := readLines(t, strings.NewReader(text+"\n{}\n"), limit)
			if len(lines) != 2 || !lines[0].tooLong {
				t.Fatalf("%d lines", len(lines))
			}
			if id := idAtEdge(lines[0]); id != 4711 {
				t.Errorf("cut %d: id %d of a line that ends with %q", cut, id, text[len(text)-20:])
			}
		}
	}
}
