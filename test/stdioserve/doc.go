// Package stdioserve drives the stdio command of the real program: with servers of its own, and as a bridge to a proxy
// that runs already.
package stdioserve
