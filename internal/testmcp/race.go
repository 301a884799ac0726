//go:build race

package testmcp

const raceEnabled = true
