// Package faults tests that an upstream which cannot be reached, answers wrongly or is slow costs nobody but itself, and
// that no secret of one is shown anywhere.
package faults

import (
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

func TestMain(m *testing.M) { testmcp.Main(m) }
