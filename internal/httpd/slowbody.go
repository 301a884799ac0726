package httpd

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// bodyGrace is how long the sending of a body may take, and more by a second for each bodyRate bytes that have come.
	bodyGrace = 30 * time.Second
	bodyRate  = 16 << 10
)

// timedBody is a body that must come within its time: clients that send a byte now and then would hold connections and
// requests for as long as they like. The time is that of the connection, so it holds for what the server itself reads of a
// body that nobody else does. It ends with the body: the call that the body was for takes as long as it takes.
type timedBody struct {
	src      io.ReadCloser
	rc       *http.ResponseController
	begun    time.Time
	read     int64
	extended int64 // read, when the deadline was set last
	over     bool
	count    func(string)
}

// hurry sets a deadline for the body of a request, if it has one, and gives the request to go on with.
func (d *Door) hurry(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.ContentLength == 0 {
		return r
	}
	b := &timedBody{src: r.Body, rc: http.NewResponseController(w), begun: time.Now(), count: d.opt.Limit}
	if b.rc.SetReadDeadline(b.begun.Add(bodyGrace)) != nil {
		return r
	}
	if r.Header.Get("Expect") != "" {
		// The server looks at its own request to see that such a body has not been asked for.
		r = r.WithContext(r.Context())
	}
	r.Body = b
	return r
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.read += int64(n)
	switch {
	case b.over:
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.over = true
		b.count("body_time")
	case err != nil:
		// The body is there, or will never be. What is read from now on only tells whether the client is still there.
		b.over = true
		_ = b.rc.SetReadDeadline(time.Time{})
	case b.read-b.extended >= 4*bodyRate:
		b.extended = b.read
		_ = b.rc.SetReadDeadline(b.begun.Add(bodyGrace + time.Duration(b.read/bodyRate)*time.Second))
	}
	return n, err
}

func (b *timedBody) Close() error { return b.src.Close() }
