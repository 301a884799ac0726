package proxy

import (
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// allows says whether a policy lets a wire name through: deny wins, and an empty expose lets all through.
func allows(p config.Policy, name string) bool {
	matches := func(pattern string) bool { return matchGlob(pattern, name) }
	if slices.ContainsFunc(p.Deny, matches) {
		return false
	}
	return len(p.Expose) == 0 || slices.ContainsFunc(p.Expose, matches)
}

// matchGlob matches a name with a pattern in which * stands for anything and ? for one character.
func matchGlob(pattern, name string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == name
	}
	p, n := []rune(pattern), []rune(name)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
