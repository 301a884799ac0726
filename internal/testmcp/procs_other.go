//go:build !linux

package testmcp

// Without /proc the kit cannot look for processes that were left over.

// Alive says whether a process runs; it is known on Linux only.
func Alive(int) bool { return false }

// Descendants gives the living processes below pid; they are known on Linux only.
func Descendants(int) []int { return nil }

// RSS gives the resident memory of a process in bytes; it is known on Linux only.
func RSS(int) int { return 0 }

func marked(string) []int { return nil }

func commandLine(int) string { return "" }
