package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-proxy/mcp-proxy/bench/cheapmcp"
)

// faultEnv makes the stand-in for the product misbehave.
const faultEnv = "BENCH_TEST_FAULT"

// The test binary plays the roles as the real program does, and stands in for
// the product when it is called like that.
func TestMain(m *testing.M) {
	played, err := runRole(os.Args[1:])
	if !played && len(os.Args) > 1 && os.Args[1] == "serve" {
		played, err = true, fakeProduct(os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if played {
		os.Exit(0)
	}
	// The children are this binary: under the race detector each of them would
	// wait a second before it exits.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	goleak.VerifyTestMain(m)
}

// fakeProduct serves what the product would: its upstream's tools under their
// exposed names, and /readyz.
func fakeProduct(args []string) error {
	if os.Getenv(faultEnv) == "exit" {
		return errors.New("the configuration is wrong")
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	config := flags.String("config", "", "")
	listen := flags.String("listen", "", "")
	flags.String("log-format", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	handler, err := fakeHandler(*config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	context.AfterFunc(ctx, func() { server.Close() })
	fmt.Fprintf(os.Stderr, "{\"msg\":\"starting\"}\n{\"msg\":\"listening\",\"url\":\"http://%s/mcp\"}\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func fakeHandler(configFile string) (http.Handler, error) {
	text, err := os.ReadFile(configFile)
	if err != nil {
		return nil, err
	}
	var config struct {
		MCPServers map[string]struct {
			URL, Command, Protocol string
			Args                   []string
		}
		Proxy struct {
			StateDir string `json:"state_dir"`
		}
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	upstream, ok := config.MCPServers[upstreamID]
	if !ok || upstream.Protocol == "" || config.Proxy.StateDir == "" {
		return nil, fmt.Errorf("the configuration lacks something: %s", text)
	}
	inner := cheapmcp.Handler(cheapmcp.New(0))
	switch {
	case upstream.URL != "":
		target, err := url.Parse(upstream.URL)
		if err != nil {
			return nil, err
		}
		inner = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = target
		}}
	case len(upstream.Args) != 1 || upstream.Args[0] != roleStdio:
		return nil, fmt.Errorf("the upstream is %s %v", upstream.Command, upstream.Args)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/mcp", wireNames(inner))
	return mux, nil
}

// wireNames takes the exposed names out of requests.
func wireNames(inner http.Handler) http.Handler {
	prefix := []byte(exposedName(""))
	var seen atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		body = bytes.Replace(body, prefix, nil, 1)
		if name, ok := bytes.CutPrefix([]byte(r.Header.Get("Mcp-Name")), prefix); ok {
			r.Header.Set("Mcp-Name", string(name))
		}
		if seen.Add(1) > 5 && os.Getenv(faultEnv) == "wrong id" {
			body = bytes.Replace(body, []byte(`"id":1`), []byte(`"id":2`), 1)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		inner.ServeHTTP(w, r)
	})
}

// runBench runs the program with the stand-in and returns what it printed.
func runBench(t *testing.T, args ...string) (code int, out, faults string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	var stdout, stderr bytes.Buffer
	begun := time.Now()
	code = run(append([]string{"-product", program, "-round", "30ms", "-rounds", "2"}, args...), &stdout, &stderr)
	t.Logf("exit %d after %v\n%s%s", code, time.Since(begun), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}
