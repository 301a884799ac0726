package search

// correct gives the words that no tool knows the forms that they may be misspellings of; false where there are none.
func (x *Index) correct(words []*queryWord) (changed bool) {
	for _, w := range words {
		most := tolerance(w.word)
		if most == 0 || w.docs > 0 {
			continue
		}
		for _, known := range x.words {
			if tolerance(known) > 0 && distance(w.word, known, most) <= most {
				w.forms = append(w.forms, known)
				changed = true
			}
		}
	}
	return changed
}

// tolerance is how many letters of a word may be wrong.
func tolerance(word string) int {
	if len(word) < 4 || len(word) > maxSpelt {
		return 0
	}
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return 0
		}
	}
	if len(word) < 8 {
		return 1
	}
	return 2
}

// maxSpelt is the longest word that is looked at for mistakes.
const maxSpelt = 40

// distance is how many letters must be changed, added, taken away or swapped with the next to make one word the other;
// more than most is as good as any other more.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][maxSpelt + 1]int
	before, last, now := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d = 1 + min(d, last[j], now[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d = min(d, before[j-2]+1)
				}
			}
			now[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
