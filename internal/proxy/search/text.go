package search

import (
	"slices"
	"strings"
	"unicode"
)

// Text is a text taken apart for searches. It is immutable, so that what many indexes hold is taken apart once.
type Text struct {
	lower string
	words []string
}

// NewText takes a text apart.
func NewText(text string) *Text {
	return &Text{lower: strings.ToLower(text), words: wordsOf(text)}
}

// wordsOf takes a text apart: each word once, in lower case. What camelCase or a number joins is there as one word and as
// its parts.
func wordsOf(text string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(word string) {
		if word = strings.ToLower(word); !seen[word] {
			seen[word] = true
			out = append(out, word)
		}
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		add(word)
		splitWord(word, add)
	}
	return out
}

// splitWord gives the parts of a word where there are several.
func splitWord(word string, part func(string)) {
	start, before := 0, rune(0)
	for i, r := range word {
		if i > 0 && (unicode.IsUpper(r) && unicode.IsLower(before) || unicode.IsDigit(r) != unicode.IsDigit(before)) {
			part(word[start:i])
			start = i
		}
		before = r
	}
	if start > 0 {
		part(word[start:])
	}
}

// corpus is many texts in one, so that all are looked through at once.
type corpus struct {
	text strings.Builder
	ends []int
}

func (c *corpus) add(text string) {
	c.text.WriteString(text)
	c.text.WriteByte(0)
	c.ends = append(c.ends, c.text.Len())
}

// holding calls found for each text that holds a part.
func (c *corpus) holding(part string, found func(i int)) {
	text, from := c.text.String(), 0
	for i := 0; i < len(c.ends); i++ {
		at := strings.Index(text[from:], part)
		if at < 0 {
			return
		}
		n, _ := slices.BinarySearch(c.ends[i:], from+at+1)
		i += n
		found(i)
		from = c.ends[i]
	}
}
