// Package noise tests upstreams that write to stdout what is no message.
package noise

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }
