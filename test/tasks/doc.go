// Package tasks tests calls that servers run as tasks, through the real program: for clients that know tasks and for those
// that do not.
package tasks
