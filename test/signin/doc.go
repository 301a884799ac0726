// Package signin shows, through the real program, how the proxy signs in at servers: with what, where its tokens come from,
// and what becomes of calls when a token is good no more.
package signin
