package interop

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestMain lets this binary stand in for a server that the proxy starts.
func TestMain(m *testing.M) {
	testmcp.MaybeRunChild()
	if name := os.Getenv(childServer); name != "" {
		if err := newAsker(name, os.Getenv(childGates)).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testmcp.Cleanup(m.Run())
}
