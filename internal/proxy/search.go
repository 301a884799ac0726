package proxy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// terms are what a tool is searched by, all in lower case: texts, and the words of them.
type terms struct {
	names, desc         string // a line break stands between two names
	nameWords, descWord []string
}

// newTerms gives the terms of a tool. What its server says is taken apart once, whatever the snapshots.
func (it *Item) newTerms() *terms {
	names := it.Name
	if it.Wire != it.Name {
		names += "\n" + it.Wire
	}
	t := &terms{names: strings.ToLower(names), nameWords: wordsOf(names)}
	if it.over.Description != "" {
		t.desc, t.descWord = strings.ToLower(it.over.Description), wordsOf(it.over.Description)
		return t
	}
	o := it.offer
	o.once.Do(func() {
		text, _ := wire.DecodeString(o.obj.Get(o.raw, "description").Of(o.raw))
		o.desc, o.descWords = strings.ToLower(text), wordsOf(text)
	})
	t.desc, t.descWord = o.desc, o.descWords
	return t
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

// index finds tools by words. It belongs to one view, and is made when somebody searches there for the first time. It is
// safe for concurrent use.
type index struct {
	all  []*Item
	once sync.Once // guards what follows

	words       []string
	places      [][]spot // of the words, in the same order
	names, desc corpus
}

// spot says that an item has a word, in its names or else in its description.
type spot struct {
	item   int32
	inName bool
}

func newIndex(items []*Item) *index {
	return &index{all: items}
}

func (x *index) build() {
	known := map[string]int{}
	for i, it := range x.all {
		t := it.newTerms()
		x.names.add(t.names)
		x.desc.add(t.desc)
		for k, words := range [2][]string{t.nameWords, t.descWord} {
			for _, word := range words {
				n, ok := known[word]
				if !ok {
					n = len(x.words)
					known[word] = n
					x.words, x.places = append(x.words, word), append(x.places, nil)
				}
				x.places[n] = append(x.places[n], spot{int32(i), k == 0})
			}
		}
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

// fit is how well an item fits a query.
type fit struct {
	item           int32
	tier           int8 // the best is 0
	inName, inDesc int8 // words that are there
	score          float32
}

// The tiers, from the best.
const (
	tierName      = iota // the query is the name
	tierInName           // it is a part of the name
	tierNameWords        // all its words are in the name
	tierWords            // all are in name and description together
	tierText             // it is a part of the description
	tierSome             // some of its words are there; only where nothing has them all
	tierNone
)

// find gives the items that fit a query, the best first and at most so many, and how many there are. Every item whose name
// or description holds the query as it is fits, and every item that has all its words, or words that begin with them or
// hold them. Where nothing does, words that no item knows are taken for misspelt ones, and at last items that have some of
// the words will do.
func (x *index) find(query string, most int) (best []*Item, total int) {
	x.once.Do(x.build)
	q := strings.ToLower(strings.TrimSpace(query))
	if len(q) > maxQuery {
		q = strings.ToValidUTF8(q[:maxQuery], "")
	}
	words := queryWords(q)
	fits := x.look(q, words)
	top, total := choose(fits, tierSome, most)
	if total == 0 && x.correct(words) {
		fits = x.look(q, words)
		top, total = choose(fits, tierSome, most)
	}
	if total == 0 {
		top, total = choose(fits, tierNone, most)
	}
	for _, f := range top {
		best = append(best, x.all[f.item])
	}
	return best, total
}

// choose gives the best of those whose tier is before a bound.
func choose(fits []fit, bound int8, most int) (top []fit, total int) {
	for _, f := range fits {
		if f.tier >= bound {
			continue
		}
		total++
		if len(top) == most && most > 0 && better(f, top[most-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, f, func(a, b fit) int { return better(a, b) })
		if top = slices.Insert(top, at, f); len(top) > most {
			top = top[:most]
		}
	}
	return top, total
}

func better(a, b fit) int {
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.score, a.score), cmp.Compare(a.item, b.item))
}

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

// look says how well each item fits.
func (x *index) look(q string, words []*queryWord) []fit {
	fits := make([]fit, len(x.all))
	for i := range fits {
		fits[i] = fit{item: int32(i), tier: tierNone}
	}
	hits := make([]float32, len(x.all))
	named := make([]bool, len(x.all))
	for _, w := range words {
		x.lookFor(w, fits, hits, named)
	}
	for i := range fits {
		f := &fits[i]
		switch {
		case len(words) > 0 && int(f.inName) == len(words):
			f.tier = tierNameWords
		case len(words) > 0 && int(f.inName+f.inDesc) == len(words):
			f.tier = tierWords
		case f.inName+f.inDesc > 0:
			f.tier = tierSome
		}
	}
	if q == "" {
		return fits
	}
	x.desc.holding(q, func(i int) { fits[i].tier = min(fits[i].tier, tierText) })
	x.names.holding(q, func(i int) {
		fits[i].tier = tierInName
		if it := x.all[i]; strings.EqualFold(it.Name, q) || strings.EqualFold(it.Wire, q) {
			fits[i].tier = tierName
		}
	})
	for i := range fits {
		// Of two names that fit alike the shorter says less that was not asked for.
		fits[i].score -= float32(len(x.all[i].Wire)) / 100
	}
	return fits
}

// lookFor adds what one word says to the fits. The other slices are blank, and are left so.
func (x *index) lookFor(w *queryWord, fits []fit, hits []float32, named []bool) {
	var touched []int32
	for n, word := range x.words {
		level := w.level(word)
		if level == 0 {
			continue
		}
		for _, s := range x.places[n] {
			if hits[s.item] == 0 {
				touched = append(touched, s.item)
			}
			if s.inName {
				named[s.item] = true
				hits[s.item] = max(hits[s.item], 4*level)
			} else {
				hits[s.item] = max(hits[s.item], level)
			}
		}
	}
	w.docs = len(touched)
	// What few have says more.
	weight := float32(math.Log(1 + float64(len(x.all))/float64(1+len(touched))))
	for _, i := range touched {
		if named[i] {
			fits[i].inName++
		} else {
			fits[i].inDesc++
		}
		fits[i].score += hits[i] * weight
		hits[i], named[i] = 0, false
	}
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

// correct gives the words that no item knows the forms that they may be misspellings of; false where there are none.
func (x *index) correct(words []*queryWord) (changed bool) {
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
