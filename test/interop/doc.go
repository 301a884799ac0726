// Package interop puts servers that others wrote behind one proxy and lets clients that others wrote use them all:
// the Go SDK, both generations of the TypeScript SDK and the inspector, in both eras of the protocol.
//
// The clients list, call, read, get and complete; they answer what servers ask (elicitation, sampling, roots), subscribe,
// cancel, and come back to a stream that was cut, with servers of both programs, over stdio and HTTP, in every era that both
// sides speak: one subtest for each cell, and a test that none is left out. What they answer has their name in it, so that
// nobody can take another's answer for its own. Servers that everybody shares are talked to by one client after the other,
// those with a connection for each by all at once. Servers that are started through npx rest, come back, and are killed in
// the middle of a call.
//
// Lazy lists and profiles are shown with the same clients before a server of 300 tools, and what the lists cost is counted
// with a tokenizer.
//
// The tests need the npm packages of test/npm. MCP_PROXY_INTEROP names the folder they are installed in; without it
// the tests are skipped. "make interop" sets it.
package interop
