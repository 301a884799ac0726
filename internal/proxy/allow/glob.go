package allow

import "strings"

// Matches matches a name with a pattern in which * stands for anything and ? for one character.
func Matches(pattern, name string) bool {
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

// overlap says whether there is a text that both patterns match.
func overlap(a, b string) bool {
	x, y := []rune(a), []rune(b)
	// reach[j] says whether the first i of x and the first j of y can match the same text.
	reach := make([]bool, len(y)+1)
	for i := range len(x) + 1 {
		diagonal := false // reach[j-1] of the row before
		for j := range len(y) + 1 {
			above := reach[j]
			switch {
			case i == 0 && j == 0:
				reach[j] = true
			case i > 0 && x[i-1] == '*' || j > 0 && y[j-1] == '*':
				reach[j] = i > 0 && above || j > 0 && reach[j-1] // the star is empty, or takes one more
			default:
				reach[j] = i > 0 && j > 0 && diagonal && (x[i-1] == y[j-1] || x[i-1] == '?' || y[j-1] == '?')
			}
			diagonal = above
		}
	}
	return reach[len(y)]
}
