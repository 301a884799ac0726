package lines

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads to the end; a line that was too long is "<too long>".
func readAll(t *testing.T, r io.Reader, maxLine int) (out []string) {
	t.Helper()
	in := NewReader(r, maxLine)
	for {
		b, err := in.Next()
		switch {
		case err == nil:
			out = append(out, string(b))
		case errors.Is(err, ErrTooLong):
			out = append(out, "<too long>")
		case err == io.EOF:
			return out
		default:
			t.Fatal(err)
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("ab", readBuffer)
	for _, tt := range []struct {
		name, in string
		max      int
		want     []string
	}{
		{"nothing", "", 10, nil},
		{"two", "one\ntwo\n", 10, []string{"one", "two"}},
		{"no end", "one\ntwo", 10, []string{"one", "two"}},
		{"other ends", "one\r\ntwo\r\n", 10, []string{"one", "two"}},
		{"blank lines", "\n \t\r\n\none\n\n", 10, []string{"one"}},
		{"a byte order mark", "\ufeffone\n\ufeff\n \ufeff two\n", 10, []string{"one", "two"}},
		{"as long as allowed", "0123456789\r\n", 10, []string{"0123456789"}},
		{"too long", "0123456789a\nnext\n", 10, []string{"<too long>", "next"}},
		{"too long without end", "0123456789a", 10, []string{"<too long>"}},
		{"over the buffer", long + "\nnext", len(long), []string{long, "next"}},
		{"over the buffer without end", long, len(long), []string{long}},
		{"over the buffer and too long", long + "\nnext", len(long) - 1, []string{"<too long>", "next"}},
		{"far too long", long + long + long + "\nnext", 10, []string{"<too long>", "next"}},
		{"far too long without end", long + long, len(long), []string{"<too long>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAll(t, strings.NewReader(tt.in), tt.max); !slices.Equal(got, tt.want) {
				t.Errorf("at once: %.200q", got)
			}
			if got := readAll(t, iotest.OneByteReader(strings.NewReader(tt.in)), tt.max); !slices.Equal(got, tt.want) {
				t.Errorf("byte by byte: %.200q", got)
			}
		})
	}
}

func TestReaderGivesTheErrorOfItsSource(t *testing.T) {
	broken := errors.New("broken")
	for _, before := range []string{"", "half a line", strings.Repeat("x", 3*readBuffer)} {
		in := NewReader(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken)), readBuffer)
		if _, err := in.Next(); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", len(before), err)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{"a\nb\n", "\ufeff\r\n", "0123456789\n", "0123456789ab\n\nx"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 10
		var want []string
		for _, line := range bytes.Split(in, []byte("\n")) {
			switch {
			case len(bytes.TrimRight(line, "\r")) > most:
				want = append(want, "<too long>")
			case len(trim(line)) > 0:
				want = append(want, string(trim(line)))
			}
		}
		if got := readAll(t, bytes.NewReader(in), most); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	})
}
