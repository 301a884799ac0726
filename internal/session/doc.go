// Package session holds the conversations with clients. It tells for each request which era it belongs to, keeps the
// legacy sessions, checks what modern requests must carry, and decides how an answer travels: as JSON or as a stream of
// events. What a request is about is none of its business; the proxy room answers it.
package session
