// Package framing tests how messages are cut out of byte streams, whatever their size, their line ends and what stands
// in them.
package framing

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }
