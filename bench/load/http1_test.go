package load

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// scripted is a connection whose other side sends a fixed text.
type scripted struct {
	net.Conn
	in io.Reader
}

func (s *scripted) Read(p []byte) (int, error) { return s.in.Read(p) }

func readAll(t *testing.T, in io.Reader, n int) []response {
	t.Helper()
	r := newReader(&scripted{in: in})
	var got []response
	for range n {
		resp, err := r.read()
		if err != nil {
			t.Fatal(err)
		}
		resp.body = bytes.Clone(resp.body)
		got = append(got, resp)
	}
	return got
}

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 300<<10)
	const sizeOfLong = "307200"
	tests := []struct {
		name, text string
		want       response
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", response{status: 200, body: []byte("hi")}},
		{"names in any case", "HTTP/1.1 200 OK\r\ncontent-LENGTH:2\r\nMCP-session-ID: abc\r\n\r\nhi", response{status: 200, session: "abc", body: []byte("hi")}},
		{"accepted", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", response{status: 202}},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", response{status: 204}},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nhi\r\n3\r\n\r\n!\r\n0\r\n\r\n", response{status: 200, body: []byte("hi\r\n!")}},
		{"events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n", response{status: 200, events: true}},
		{"more than the buffer", "HTTP/1.1 200 OK\r\nContent-Length: " + sizeOfLong + "\r\n\r\n" + long, response{status: 200, body: []byte(long)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// Twice, to see that reading stops where the next answer begins.
			whole := readAll(t, strings.NewReader(test.text+test.text), 2)
			bytewise := readAll(t, iotest.OneByteReader(strings.NewReader(test.text)), 1)
			for _, got := range append(whole, bytewise...) {
				if got.status != test.want.status || got.session != test.want.session ||
					got.events != test.want.events || !bytes.Equal(got.body, test.want.body) {
					t.Errorf("got %.200v", got)
				}
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       error // nil: any
	}{
		{"nothing", "", io.ErrUnexpectedEOF},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", io.ErrUnexpectedEOF},
		{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", io.ErrUnexpectedEOF},
		{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhi", io.ErrUnexpectedEOF},
		{"endless head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("a: b\r\n", maxHead), errTooLong},
		{"huge body", "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", errTooLong},
		{"huge chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n", errTooLong},
		{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errTooLong},
		{"bad chunk size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", nil},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nhi", nil},
		{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", nil},
		{"bad status", "HTTP/1.1 abc OK\r\n\r\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := newReader(&scripted{in: strings.NewReader(test.text)}).read()
			if err == nil || (test.want != nil && !errors.Is(err, test.want)) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n9\r\ndata: a\n\n\r\n0\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		resp, err := newReader(&scripted{in: strings.NewReader(text)}).read()
		if err != nil {
			return
		}
		if len(resp.body) > len(text) {
			t.Errorf("a body of %d bytes out of %d", len(resp.body), len(text))
		}
		lastEvent(resp.body)
	})
}

func TestLastEvent(t *testing.T) {
	tests := []struct{ stream, want string }{
		{"", ""},
		{"data: a\n\n", "a"},
		{"data:a\r\n\r\n", "a"},
		{"event: message\nid: 1\ndata: a\n\n", "a"},
		{"data: a\ndata: b\n\n", "a\nb"},
		{"data: a\n\ndata: b\n\n: keep-alive\n\n", "b"},
		{"id: 0\ndata:\n\ndata: b\n\n", "b"},
		{"data: a\n\ndata: cut", "a"},
	}
	for _, test := range tests {
		if got := lastEvent([]byte(test.stream)); string(got) != test.want {
			t.Errorf("%q gave %q, want %q", test.stream, got, test.want)
		}
	}
}
