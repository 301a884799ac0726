package testmcp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Places that are no MCP servers, as addresses "host:port".

// RefusedAddr gives an address at which nothing listens.
func RefusedAddr(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer ln.Close()
	return ln.Addr().String()
}

// SilentAddr gives an address that accepts connections and never says a word.
func SilentAddr(t testing.TB) string {
	return place(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
}

// GarbageAddr gives an address that answers each connection with these bytes and closes it.
func GarbageAddr(t testing.TB, text string) string {
	return place(t, func(c net.Conn) {
		// The request is read first: closing over unread bytes would be a reset.
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		_, _ = io.WriteString(c, text)
	})
}

// place listens until the test ends and gives each connection to f, which returns when it is closed.
func place(t testing.TB, f func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	var mu sync.Mutex
	conns, over := map[net.Conn]bool{}, false
	var wg sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		mu.Lock()
		conns[c] = true
		late := over
		mu.Unlock()
		if !late {
			f(c)
		}
	}
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		over = true
		for c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return ln.Addr().String()
}
