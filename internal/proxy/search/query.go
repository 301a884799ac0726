package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxQuery = 1000 // bytes
	maxWords = 12   // of a query
)

// queryWord is one word of a query.
type queryWord struct {
	word string
	// forms are what it is found by: the word itself, its singular, what it may be meant for.
	forms []string
	// whole words are short ones and numbers: they are found as they are or not at all.
	whole bool
	docs  int // that have it
}

// fillers say nothing about what is looked for.
var fillers = strings.Fields("a an and are as at by can do does for from how i in is it me my need of on or our please some that the this to tool tools use using want we what which with you")

// queryWords takes a query apart. Words that say nothing count only where there are no others.
func queryWords(q string) []*queryWord {
	var out, nothing []*queryWord
	for text := range strings.FieldsFuncSeq(q, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		w := &queryWord{word: text, whole: isShort(text), forms: []string{text}}
		switch stem, plural := strings.CutSuffix(text, "ies"); {
		case w.whole:
		case plural:
			w.forms = append(w.forms, stem+"y")
		case strings.HasSuffix(text, "s") && !strings.HasSuffix(text, "ss"):
			w.forms = append(w.forms, text[:len(text)-1])
		}
		same := func(o *queryWord) bool { return o.word == text }
		switch {
		case slices.ContainsFunc(out, same) || slices.ContainsFunc(nothing, same):
		case slices.Contains(fillers, text):
			nothing = append(nothing, w)
		default:
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		out = nothing
	}
	return out[:min(len(out), maxWords)]
}

// isShort is for words that begin too many others: two letters, and numbers. Scripts without blanks have no short words.
func isShort(word string) bool {
	if strings.IndexFunc(word, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		return false
	}
	return len(word) < 3 || strings.IndexFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

// level says how well a word fits: whole, as a beginning, within.
func (w *queryWord) level(word string) (best float32) {
	for _, form := range w.forms {
		switch {
		case word == form:
			return 3
		case w.whole || len(word) < len(form):
		case strings.HasPrefix(word, form):
			best = max(best, 2)
		case strings.Contains(word, form):
			best = max(best, 1)
		}
	}
	return best
}
