// Package lost shows, through the real program, that sessions which servers have lost cost clients nothing, in whatever words
// a server says so, and what becomes of them where the configuration does not want them replaced.
package lost
