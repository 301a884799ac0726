// Package wire handles JSON-RPC messages as the bytes they came in.
//
// A message is scanned once by [Parse], which validates all of it and notes where the members stand that a proxy
// reads: those of the envelope, of params, result or error, and of _meta. A [Patch] then replaces, inserts or removes
// single members; every other byte goes through untouched, so that big integers, key order, escapes and members
// nobody here has heard of survive. The package also holds the era constants, request ids and server-sent events.
package wire
