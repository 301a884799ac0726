// Package pins tests through the real program that tools of pinned servers are offered only while they are what somebody
// has approved.
package pins
