// Package life tests how upstreams that are child processes begin, end and begin again, and how the program itself ends.
package life

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }
