// Package callers shows, through the real program, what becomes of the credentials of those who call: they reach the servers
// that are to get them and nobody else, on connections of their own, and what a server offers one of them is seen by nobody
// else.
package callers
