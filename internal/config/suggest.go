package config

import "strings"

// suggest gives the candidate that was probably meant by a key, or "".
func suggest(key string, candidates []string) string {
	best, least := "", 1+max(2, len(key)/3)
	for _, c := range candidates {
		d := distance(flat(key), flat(c))
		// A short key is close to everything: more than half of it must be right.
		if d < least && 2*d < max(len(key), 2) {
			best, least = c, d
		}
	}
	return best
}

// flat takes away what dialects write differently: case, underscores, hyphens.
func flat(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

// distance counts insertions, deletions, replacements and swaps of neighbours between two keys.
func distance(a, b string) int {
	const longest = 64 // no key of ours is longer, and the table below is quadratic
	if len(a) > longest || len(b) > longest {
		return longest
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
