package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const patience = 10 * time.Second

// stuck is a writer whose Write waits for a token for each chunk, or for ever.
type stuck struct {
	tokens chan struct{}
	mu     sync.Mutex
	got    bytes.Buffer
}

func (s *stuck) Write(b []byte) (int, error) {
	if _, ok := <-s.tokens; !ok {
		return 0, io.ErrClosedPipe
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

func (s *stuck) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

func TestWriterKeepsLinesWhole(t *testing.T) {
	r, w := io.Pipe()
	out := NewWriter(w, 1000, patience)
	out.Start()
	const senders, each = 8, 200
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			for j := range each {
				if err := out.Send(fmt.Appendf(nil, "%d ", i), []byte(strings.Repeat("x", j)), []byte(" end")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		wg.Wait()
		out.Close(patience)
		_ = w.Close()
	}()
	next := map[string]int{}
	for _, line := range readAll(t, r, 10_000) {
		who, rest, _ := strings.Cut(line, " ")
		if want := strings.Repeat("x", next[who]) + " end"; strings.TrimSpace(rest) != strings.TrimSpace(want) {
			t.Fatalf("line %d of %s is %q", next[who], who, line)
		}
		next[who]++
	}
	for i := range senders {
		if n := next[fmt.Sprint(i)]; n != each {
			t.Errorf("%d lines of sender %d have come, want %d", n, i, each)
		}
	}
}

func TestWriterBreaksNoLine(t *testing.T) {
	var got bytes.Buffer
	out := NewWriter(&got, 1000, patience)
	out.Start()
	if err := out.Send([]byte("{\r\n"), []byte("\n}\r")); err != nil {
		t.Fatal(err)
	}
	if !out.Close(patience) {
		t.Error("Close gave up")
	}
	if got.String() != "{   } \n" {
		t.Errorf("written is %q", got.String())
	}
	if err := out.Send([]byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("Send after Close: %v", err)
	}
}

func TestWriterFailsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{tokens: make(chan struct{})}
		out := NewWriter(s, 100, patience)
		out.Start()
		big := bytes.Repeat([]byte("x"), 1000)
		if err := out.Send(big); err != nil {
			t.Fatalf("one message of any size fits: %v", err)
		}
		began := time.Now()
		if err := out.Send([]byte("more")); !errors.Is(err, ErrNotRead) {
			t.Errorf("Send to a full queue: %v", err)
		}
		if took := time.Since(began); took != patience {
			t.Errorf("it gave up after %v, want %v", took, patience)
		}
		select {
		case <-out.Failed():
		default:
			t.Error("Failed is not closed")
		}
		if err := out.Send([]byte("even more")); !errors.Is(err, ErrNotRead) {
			t.Errorf("Send after the failure: %v", err)
		}
		if out.Close(time.Second) {
			t.Error("Close says that everything is written")
		}
		close(s.tokens)
		synctest.Wait()
	})
}

func TestWriterBearsASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{tokens: make(chan struct{})}
		out := NewWriter(s, 100, patience)
		out.Start()
		big := bytes.Repeat([]byte("x"), 5*chunk)
		if err := out.Send(big); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		go func() { sent <- out.Send([]byte("second")) }()
		for range 6 { // each chunk takes nearly as long as is borne
			<-time.After(patience - time.Second)
			s.tokens <- struct{}{}
		}
		if err := <-sent; err != nil {
			t.Errorf("Send behind a slow reader: %v", err)
		}
		go func() { s.tokens <- struct{}{} }()
		if !out.Close(time.Second) {
			t.Error("Close gave up")
		}
		if got := s.text(); got != string(big)+"\nsecond\n" {
			t.Errorf("%d bytes have come, want %d", len(got), len(big)+8)
		}
	})
}

func TestWriterTellsOfABrokenPipe(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	out := NewWriter(w, 100, patience)
	out.Start()
	_ = out.Send([]byte("lost"))
	<-out.Failed()
	if err := out.Err(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Err is %v", err)
	}
	if !out.Close(patience) {
		t.Error("Close gave up")
	}
}
