package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// show writes an event down so that two can be compared.
func show(e Event) string {
	return fmt.Sprintf("id=%q/%v name=%q data=%q/%v retry=%v", e.ID, e.HasID, e.Name, e.Data, e.HasData, e.Retry)
}

// readAll reads events up to the end of the stream; events that were too large are listed as such.
func readAll(r io.Reader, most int) ([]string, error) {
	var list []string
	er := NewEventReader(r, most)
	for {
		ev, err := er.Next()
		switch {
		case err == nil:
			list = append(list, show(ev))
		case errors.Is(err, ErrEventTooLarge):
			list = append(list, "too large")
		default:
			return list, err
		}
	}
}

func TestEventReader(t *testing.T) {
	data := func(s string) Event { return Event{Data: []byte(s), HasData: true} }
	for _, c := range []struct {
		what, in string
		want     []Event
	}{
		{"plain", "data: a\n\n", []Event{data("a")}},
		{"all fields", "event: message\nid: 7\nretry: 1500\ndata: a\n\n",
			[]Event{{ID: "7", HasID: true, Name: "message", Data: []byte("a"), HasData: true, Retry: 1_500_000_000}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{data("a"), data("b")}},
		{"CR", "data: a\r\rdata: b\r\r", []Event{data("a"), data("b")}},
		{"mixed", "data: a\r\ndata: b\rdata: c\n\r\ndata: d\n\n", []Event{data("a\nb\nc"), data("d")}},
		{"byte order mark", "\uFEFFdata: a\n\n\uFEFFdata: b\n\n", []Event{data("a")}},
		{"comments", ": hi\n\n:\ndata: a\n: there\n\n", []Event{data("a")}},
		{"no blank after the colon, or two", "data:a\ndata:  b\n\n", []Event{data("a\n b")}},
		{"no colon", "data\n\ndata\ndata\n\n", []Event{data(""), data("\n")}},
		{"colons in the value", "data: a:b: c\n\n", []Event{data("a:b: c")}},
		{"unknown fields", "foo: 1\nDATA: x\ndata : y\n\ndata: a\nfoo\n\n", []Event{data("a")}},
		{"an id without data", "id: 1\n\n", []Event{{ID: "1", HasID: true}}},
		{"an id with empty data", "id: 1\ndata: \n\n", []Event{{ID: "1", HasID: true, HasData: true}}},
		{"an empty id", "id\ndata: a\n\n", []Event{{HasID: true, Data: []byte("a"), HasData: true}}},
		{"an id with NUL", "id: a\x00\ndata: a\n\n", []Event{data("a")}},
		{"ids do not carry over", "id: 1\ndata: a\n\ndata: b\n\n", []Event{{ID: "1", HasID: true, Data: []byte("a"), HasData: true}, data("b")}},
		{"retry", "retry: 5\n\nretry: 5s\n\nretry: -1\n\nretry\n\nretry: 99999999999999999999999\n\n",
			[]Event{{Retry: 5_000_000}, {Retry: 86_400_000_000_000}}},
		{"data before other fields", "data: a\nid: 1\nevent: x\ndata: b\n\n", []Event{{ID: "1", HasID: true, Name: "x", Data: []byte("a\nb"), HasData: true}}},
		{"unfinished", "data: a\n\ndata: b\n", []Event{data("a")}},
		{"blank lines", "\n\r\n\n\rdata: a\n\n\n\n", []Event{data("a")}},
		{"line separators are text", "data: a\u2028b\u0085c\v\f\n\n", []Event{data("a\u2028b\u0085c\v\f")}},
		{"long", "data: " + strings.Repeat("x", 70_000) + "\ndata: y\n\ndata: z\n\n", []Event{data(strings.Repeat("x", 70_000) + "\ny"), data("z")}},
		{"many lines", strings.Repeat("data: 0123456789\r\nid: 1\r\n: c\r\n", 5_000) + "\r\ndata: z\n\n",
			[]Event{{ID: "1", HasID: true, Data: []byte(strings.Repeat("0123456789\n", 4_999) + "0123456789"), HasData: true}, data("z")}},
	} {
		var want []string
		for _, e := range c.want {
			want = append(want, show(e))
		}
		for how, r := range map[string]io.Reader{
			"at once": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)),
			"halves": iotest.HalfReader(strings.NewReader(c.in)), "with the error": iotest.DataErrReader(strings.NewReader(c.in)),
		} {
			got, err := readAll(r, 1<<20)
			if !slices.Equal(got, want) || err != io.EOF {
				t.Errorf("%s, %s: %.300q, %v; want %.300q", c.what, how, got, err, want)
			}
		}
	}
}

func TestEventsOverTheLimit(t *testing.T) {
	const most = 10
	in := "data: 0123456789\n\n" + "data: 0123456789x\nid: 1\n\n" + "data: 01234\ndata: 5678\n\n" + "data: 01234\ndata: 56789\ndata: more\n\n" +
		"id: " + strings.Repeat("x", 50) + "\n\n" + ": " + strings.Repeat("comment", 50) + "\ndata: a\n\n" +
		"data: " + strings.Repeat("x", 50_000) + "\r\n: c\r\ndata: y\r\n\r\n" + "data: b\n\n"
	want := []string{
		show(Event{Data: []byte("0123456789"), HasData: true}), "too large", show(Event{Data: []byte("01234\n5678"), HasData: true}),
		"too large", "too large", show(Event{Data: []byte("a"), HasData: true}), "too large", show(Event{Data: []byte("b"), HasData: true}),
	}
	for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
		got, err := readAll(r, most)
		if !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

// endless repeats one byte and counts.
type endless struct {
	c byte
	n int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 8<<20 {
		return 0, io.ErrUnexpectedEOF
	}
	for i := range p {
		p[i] = e.c
	}
	e.n += len(p)
	return len(p), nil
}

func TestEndlessLinesAreNotKept(t *testing.T) {
	for _, start := range []string{": ", "data: ", "x"} {
		r := NewEventReader(io.MultiReader(strings.NewReader(start), &endless{c: 'x'}), 1000)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.Next()
		if start != ": " {
			if err != ErrEventTooLarge {
				t.Errorf("%q: %v", start, err)
			}
			_, err = r.Next()
		}
		runtime.ReadMemStats(&after)
		if err != io.ErrUnexpectedEOF {
			t.Errorf("%q: %v, want the error of the reader", start, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%q: %d bytes were allocated", start, n)
		}
	}
}

func TestLargeBufferIsGivenBack(t *testing.T) {
	r := NewEventReader(strings.NewReader("data: "+strings.Repeat("x", 1<<20)+"\n\ndata: a\n\n"), 2<<20)
	if ev, err := r.Next(); err != nil || len(ev.Data) != 1<<20 {
		t.Fatalf("%d bytes, %v", len(ev.Data), err)
	}
	if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
		t.Fatalf("%q, %v", ev.Data, err)
	}
	if cap(r.buf) > eventRetain {
		t.Errorf("the buffer still holds %d bytes", cap(r.buf))
	}
}

// parts hands out one part per read and fails the test when asked for more than is needed.
type parts struct {
	list []string
	t    *testing.T
}

func (p *parts) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		p.t.Error("the reader asks for more than the event needs")
		return 0, io.EOF
	}
	n := copy(b, p.list[0])
	p.list = p.list[1:]
	return n, nil
}

func TestEventsAreNotHeldBack(t *testing.T) {
	for _, in := range [][]string{{"data: a\n\n"}, {"data: a\r\n\r"}, {"data: a\r\r"}, {"da", "ta: a\r", "\n", "\r"}} {
		src := &parts{list: in, t: t}
		r := NewEventReader(src, 100)
		if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
			t.Errorf("%q: %q, %v", in, ev.Data, err)
		}
		src.list = []string{"\ndata: b\r\n\r"}
		if strings.HasSuffix(in[len(in)-1], "\n") {
			src.list = []string{"data: b\r\n\r"}
		}
		if ev, err := r.Next(); err != nil || string(ev.Data) != "b" {
			t.Errorf("%q: the next event is %q, %v", in, ev.Data, err)
		}
	}
}

func TestReaderWithoutProgress(t *testing.T) {
	if _, err := NewEventReader(stuck{}, 10).Next(); err != io.ErrNoProgress {
		t.Errorf("a reader that never reads: %v", err)
	}
	broken := errors.New("broken")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\nda"), iotest.ErrReader(broken)), 10)
	if len(got) != 1 || err != broken {
		t.Errorf("%q, %v", got, err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestAppendEvent(t *testing.T) {
	for _, c := range []struct{ name, id, data, want string }{
		{"message", "7", `{"a":1}`, "event: message\nid: 7\ndata: {\"a\":1}\n\n"},
		{"", "7", "", "id: 7\ndata: \n\n"},
		{"", "", "x", "data: x\n\n"},
		{"a\nb", "c\rd", "e\r\nf", "event: a b\nid: c d\ndata: e  f\n\n"},
	} {
		data := []byte(c.data)
		if got := string(AppendEvent([]byte("x"), c.name, c.id, data)); got != "x"+c.want || string(data) != c.data {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := AppendComment(nil, "keep\nalive"); !bytes.Equal(got, []byte(": keep alive\n\n")) {
		t.Errorf("comment %q", got)
	}
}
