// Package search finds tools by words of their names and descriptions. An [Index] is over tools that do not change; it
// knows them by their places in a list and nothing of where they come from.
package search

import (
	"strings"
	"sync"
)

// Tool is what a tool is found by.
type Tool struct {
	Name        string // that clients see
	Wire        string // that its server gives it
	Description *Text
}

// Index finds tools by words. It is made when somebody searches for the first time, and is safe for concurrent use.
type Index struct {
	n    int
	tool func(i int) Tool
	once sync.Once // guards what follows

	tools       []Tool   // without their descriptions
	words       []string // of all names and descriptions, each once
	places      [][]spot // of the words, in the same order
	names, desc corpus
}

// spot says that a tool has a word, in its names or else in its description.
type spot struct {
	tool   int32
	inName bool
}

// New gives an index of n tools. The first search asks once for each of them, by its place.
func New(n int, tool func(i int) Tool) *Index {
	return &Index{n: n, tool: tool}
}

func (x *Index) build() {
	x.tools = make([]Tool, x.n)
	known := map[string]int{}
	for i := range x.tools {
		t := x.tool(i)
		x.tools[i] = Tool{Name: t.Name, Wire: t.Wire}
		names := t.Name
		if t.Wire != t.Name {
			names += "\n" + t.Wire
		}
		x.names.add(strings.ToLower(names))
		x.note(known, wordsOf(names), spot{int32(i), true})
		x.desc.add(t.Description.lower)
		x.note(known, t.Description.words, spot{int32(i), false})
	}
}

// note says of words where they stand. known gives the places of words in x.words.
func (x *Index) note(known map[string]int, words []string, at spot) {
	for _, word := range words {
		n, ok := known[word]
		if !ok {
			n = len(x.words)
			known[word] = n
			x.words, x.places = append(x.words, word), append(x.places, nil)
		}
		x.places[n] = append(x.places[n], at)
	}
}

// Find gives the places of the tools that fit a query, the best first and at most so many, and how many there are. Every
// tool whose name or description holds the query as it is fits, and every tool that has all its words, or words that begin
// with them or hold them. Where nothing does, words that no tool knows are taken for misspelt ones, and at last tools that
// have some of the words will do.
func (x *Index) Find(query string, most int) (best []int, total int) {
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
		best = append(best, int(f.tool))
	}
	return best, total
}
