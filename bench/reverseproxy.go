package main

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// bufferPool hands out the copy buffers of a ReverseProxy.
type bufferPool struct{ pool sync.Pool }

func newBufferPool() *bufferPool {
	return &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}
}

func (p *bufferPool) Get() []byte { return p.pool.Get().(*[32 << 10]byte)[:] }

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[32 << 10]byte)(b)) }

// newReverseProxy is the measure for everything else: the standard library's
// proxy, set up as well as its documentation tells, which passes requests on
// to target without looking into them.
func newReverseProxy(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.Out.ContentLength > 0 {
				r.Out.Body = &exactBody{r.Out.Body, r.Out.ContentLength}
			}
		},
		Transport: &http.Transport{
			MaxIdleConns:        0, // no limit
			MaxIdleConnsPerHost: 1024,
			IdleConnTimeout:     time.Minute,
			// Otherwise the transport asks for gzip and unpacks the answers.
			DisableCompression: true,
		},
		BufferPool: newBufferPool(),
	}
}

// exactBody ends after the announced length without another look at the body.
//
// The transport reads once more behind the last byte, to see that nothing
// follows. With an upstream that answers fast, the server in front may have
// closed the body by then, because the answer has begun; the transport takes
// that for a failed request and drops the connection in mid-answer.
type exactBody struct {
	io.ReadCloser
	left int64
}

func (b *exactBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
