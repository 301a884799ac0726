//go:build !race

package testmcp

const raceEnabled = false
