// Package idle tests, through the real program, servers that are stopped while nobody needs them, and what is known of
// them meanwhile.
package idle
