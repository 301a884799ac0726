// Package smoke starts and stops the binary as an operator and a container platform do.
//
// The tests run when MCP_PROXY_SMOKE is set; "make smoke" sets it, and builds the binary that MCP_PROXY_BIN names.
package smoke
