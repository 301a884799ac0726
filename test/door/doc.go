// Package door tests the HTTP side of the proxy through its real door: the built program, a real socket, real
// children. It is about request ids, headers, statuses, batches, streams and sessions as clients meet them.
package door
