//go:build !linux

package main

// asInit does nothing: only Linux has containers whose first process is a program of one's choice.
func asInit() (code int, done bool) { return 0, false }
