// Package agents tests agents behind the built program: what clients of both eras see of them, and that their work ends
// with their calls.
package agents
