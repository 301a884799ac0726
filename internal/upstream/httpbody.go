package upstream

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// setBody gives a request its body, also for a second try by the transport on a connection that had died while idle.
func setBody(req *http.Request, body []byte) {
	if body == nil {
		return
	}
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// discard reads a little of a body that nobody wants, so that the connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// readBody reads a whole body of a bounded length.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	n := resp.ContentLength
	if n > int64(limit) {
		return nil, fmt.Errorf("%w (%d bytes)", errFrameTooLong, limit)
	}
	if n >= 0 {
		b := wire.GetBuffer(int(n))
		_, err := io.ReadFull(resp.Body, b)
		return b, err
	}
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1))
	if buf.Len() > limit {
		return nil, fmt.Errorf("%w (%d bytes)", errFrameTooLong, limit)
	}
	return buf.Bytes(), err
}

// mediaType is the type of a body without its parameters, in lower case.
func mediaType(h http.Header) string {
	v := h.Get("Content-Type")
	switch v {
	case "application/json", "text/event-stream":
		return v
	}
	if t, _, err := mime.ParseMediaType(v); err == nil {
		return t
	}
	t, _, _ := strings.Cut(v, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
