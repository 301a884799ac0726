// Package catalog tests, through the real program, what is offered to clients and what is relayed: schemas, names, bytes,
// cancellation and time limits, sharing, refreshing, and what a configuration means.
package catalog
