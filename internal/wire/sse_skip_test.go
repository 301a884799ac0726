package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEndsOfAnEventThatIsTooLargeAreKept(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for what, data := range map[string]string{
		"one line":   "data: FIRST" + long + "LAST\n\n",
		"two lines":  "data: FIRST" + long[:900] + "\ndata: " + long + "LAST\n\n",
		"CRLF":       "data: FIRST" + long + "\r\ndata: LAST\r\n\r\n",
		"many lines": "data: FIRST\n" + strings.Repeat("data: "+long[:100]+"\n", 50) + "data: LAST\n\n",
	} {
		for _, in := range []io.Reader{strings.NewReader(data + "data: next\n\n"), iotest.OneByteReader(strings.NewReader(data + "data: next\n\n"))} {
			r := NewEventReader(in, 1000)
			ev, err := r.Next()
			if !errors.Is(err, ErrEventTooLarge) || !strings.Contains(string(ev.Data), "FIRST") || len(ev.Data) > eventEdge {
				t.Errorf("%s: the event begins with %q, %v", what, ev.Data, err)
			}
			tail, err := r.Skip()
			if err != nil || !strings.HasSuffix(string(tail), "LAST") || len(tail) > eventEdge {
				t.Errorf("%s: the event ends with %q, %v", what, tail, err)
			}
			if ev, err := r.Next(); err != nil || string(ev.Data) != "next" {
				t.Errorf("%s: then comes %q, %v", what, ev.Data, err)
			}
		}
	}
}

func TestEventThatIsTooLargeAndNeverEnds(t *testing.T) {
	r := NewEventReader(strings.NewReader("data: "+strings.Repeat("x", 5000)), 1000)
	if _, err := r.Next(); !errors.Is(err, ErrEventTooLarge) {
		t.Fatalf("got %v", err)
	}
	if _, err := r.Skip(); err != io.EOF {
		t.Errorf("the end of the stream gives %v", err)
	}
}
