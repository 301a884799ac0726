// Package proxy is the middle: it merges what all upstreams offer into one immutable catalog, gives every item its
// exposed name, decides who may see and call what, routes each call to its upstream, and rewrites the few members of a
// message that differ between its two sides. It knows nothing of HTTP, processes or session ids.
package proxy
