package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/cheapmcp"
)

// Roles are what this program becomes when it starts itself again with the
// role as first argument.
const (
	roleHTTP    = "upstream-http"
	roleStdio   = "upstream-stdio"
	roleReverse = "reverse-proxy"
)

// Paths of the upstream's two servers: one with the text tools alone, one with
// a long list.
const (
	pathCalls = "/mcp"
	pathList  = "/list/mcp"

	// listedTools is the length of the long list.
	listedTools = 1000
)

// announced begins the line on which an HTTP role tells its address.
const announced = "listening "

// runRole plays the role in args, if it names one.
func runRole(args []string) (played bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	switch args[0] {
	case roleStdio:
		return true, cheapmcp.ServeStdio(cheapmcp.New(0), os.Stdin, os.Stdout)
	case roleHTTP:
		return true, serveRole(upstreamMux())
	case roleReverse:
		if len(args) != 2 {
			return true, errors.New("reverse-proxy takes the URL to pass requests on to")
		}
		target, err := url.Parse(args[1])
		if err != nil {
			return true, fmt.Errorf("parsing the URL: %w", err)
		}
		return true, serveRole(newReverseProxy(target))
	}
	return false, nil
}

func upstreamMux() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(pathCalls, cheapmcp.Handler(cheapmcp.New(0)))
	mux.Handle(pathList, cheapmcp.Handler(cheapmcp.New(listedTools)))
	return mux
}

// serveRole serves h on a free loopback port, tells the address on standard
// output, and ends when standard input does: whatever becomes of the program
// that started it, the role does not stay behind.
func serveRole(h http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Printf("%s%s\n", announced, listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		server.Close()
	}
	if fault := <-served; !errors.Is(fault, http.ErrServerClosed) {
		err = errors.Join(err, fault)
	}
	return err
}
