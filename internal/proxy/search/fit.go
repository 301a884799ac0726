package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// fit is how well a tool fits a query.
type fit struct {
	tool           int32
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
	return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.score, a.score), cmp.Compare(a.tool, b.tool))
}

// look says how well each tool fits.
func (x *Index) look(q string, words []*queryWord) []fit {
	fits := make([]fit, x.n)
	for i := range fits {
		fits[i] = fit{tool: int32(i), tier: tierNone}
	}
	hits := make([]float32, x.n)
	named := make([]bool, x.n)
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
		if t := x.tools[i]; strings.EqualFold(t.Name, q) || strings.EqualFold(t.Wire, q) {
			fits[i].tier = tierName
		}
	})
	for i := range fits {
		// Of two names that fit alike the shorter says less that was not asked for.
		fits[i].score -= float32(len(x.tools[i].Wire)) / 100
	}
	return fits
}

// lookFor adds what one word says to the fits. The other slices are blank, and are left so.
func (x *Index) lookFor(w *queryWord, fits []fit, hits []float32, named []bool) {
	var touched []int32
	for n, word := range x.words {
		level := w.level(word)
		if level == 0 {
			continue
		}
		for _, s := range x.places[n] {
			if hits[s.tool] == 0 {
				touched = append(touched, s.tool)
			}
			if s.inName {
				named[s.tool] = true
				hits[s.tool] = max(hits[s.tool], 4*level)
			} else {
				hits[s.tool] = max(hits[s.tool], level)
			}
		}
	}
	w.docs = len(touched)
	// What few have says more.
	weight := float32(math.Log(1 + float64(x.n)/float64(1+len(touched))))
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
