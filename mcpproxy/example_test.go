package mcpproxy_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/mcpproxy"
)

// upper is a function of the program that is offered as a tool.
func upper(_ context.Context, input string) (string, error) {
	if input == "" {
		return "", errors.New("there is nothing to write large")
	}
	return strings.ToUpper(input), nil
}

func client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1"}, nil)
}

func call(ctx context.Context, c *mcp.ClientSession, tool, input string) string {
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"input": input}})
	if err != nil {
		return err.Error()
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// A handler for any router, here below a path.
func ExampleServer_Handler() {
	ctx := context.Background()
	s, err := mcpproxy.New(ctx, mcpproxy.Text([]byte(`{"mcpServers": {}}`)), mcpproxy.WithFunction("large", mcpproxy.Function{
		Description: "Writes a text in capitals.", Run: upper,
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	mux := http.NewServeMux()
	mux.Handle("/tools/", http.StripPrefix("/tools", s.Handler()))
	server := httptest.NewServer(mux)
	defer server.Close()

	c, err := client().Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL + "/tools/mcp"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(call(ctx, c, "large", "hello"))
	fmt.Println(call(ctx, c, "large", ""))
	// Output:
	// HELLO
	// agent run failed: there is nothing to write large
}

// A client in the same program, without any network.
func ExampleServer_ServeTransport() {
	ctx := context.Background()
	s, err := mcpproxy.New(ctx, mcpproxy.Value(map[string]any{
		"agents": map[string]any{"shout": map[string]any{"kind": "command", "description": "Shouts.", "command": "/bin/sh", "args": []string{"-c", "cat; echo !"}}},
		"proxy":  map[string]any{"server": map[string]any{"name": "shouting", "instructions": "Shout before you whisper."}},
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ours, theirs := mcp.NewInMemoryTransports()
	done := make(chan error, 1)
	go func() { done <- s.ServeTransport(ctx, ours, mcpproxy.Part{}) }()
	c, err := client().Connect(ctx, theirs, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(call(ctx, c, "shout", "hello"))
	_ = c.Close()
	fmt.Println(<-done)
	// Output:
	// hello!
	// <nil>
}

// Clients over a socket, one conversation for each connection.
func ExampleServer_ServeTransport_socket() {
	ctx := context.Background()
	s, err := mcpproxy.New(ctx, mcpproxy.Text([]byte(`{}`)), mcpproxy.WithFunction("large", mcpproxy.Function{Description: "Writes a text in capitals.", Run: upper}))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	dir, err := os.MkdirTemp("", "mcp")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = s.ServeTransport(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, mcpproxy.Part{}) }()
		}
	}()

	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	c, err := client().Connect(ctx, &mcp.IOTransport{Reader: conn, Writer: conn}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(call(ctx, c, "large", "hello"))
	// Output: HELLO
}

// Mistakes are all told at once.
func ExampleNew_mistakes() {
	_, err := mcpproxy.New(context.Background(), mcpproxy.Text([]byte(`{
  "mcpServers": {"files": {"comand": "/usr/bin/files"}},
  "proxy": {"stream_after": 3}
}`)))
	fmt.Println(err)
	// Output:
	// the configuration has mistakes:
	// configuration:2: mcpServers.files.comand: unknown key; did you mean "command"?
	// configuration:3: proxy.stream_after: is a bare number; a duration has a unit, for example "3s"
}
