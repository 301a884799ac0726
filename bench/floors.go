package main

import (
	"fmt"
	"io"
)

// verdict is one floor and what was measured against it, both as ratios of
// calls/s.
type verdict struct {
	what   string
	floor  float64
	got    float64
	known  bool // false: there are no figures, which is a failure
	strict bool // equal to the floor is not enough
}

func (v verdict) pass() bool {
	if v.strict {
		return v.known && v.got > v.floor
	}
	return v.known && v.got >= v.floor
}

// verdicts compares results with the floors:
//   - a call that brings 100 bytes, many clients: 0.8 of ReverseProxy;
//   - one that brings 64 KiB, many clients: 0.5 of ReverseProxy;
//   - an upstream over stdio serves many clients no slower than over HTTP;
//   - a long list is served faster than ReverseProxy passes it on.
func verdicts(results []result) []verdict {
	var all []verdict
	for i := range results {
		r := &results[i]
		switch {
		case r.cell.list():
			v := r.compare(subjectHTTP, subjectReverse, 1)
			v.strict = true
			all = append(all, v)
		case r.cell.clients == manyClients:
			floor := 0.8
			if r.cell.text > 1024 {
				floor = 0.5
			}
			all = append(all, r.compare(subjectHTTP, subjectReverse, floor), r.compare(subjectStdio, subjectHTTP, 1))
		}
	}
	return all
}

func (r *result) compare(a, b subject, floor float64) verdict {
	v := verdict{what: fmt.Sprintf("%s: %s to %s", r.cell, a, b), floor: floor}
	v.got, v.known = ratio(r.of(a), r.of(b), sample.rate)
	return v
}

// printVerdicts writes one line for each and reports whether all pass.
func printVerdicts(out io.Writer, all []verdict) bool {
	good := true
	for _, v := range all {
		word, sign := "PASS", "at least"
		if !v.pass() {
			word, good = "FAIL", false
		}
		if v.strict {
			sign = "more than"
		}
		fmt.Fprintf(out, "%s  %s is %s, %s %.2f\n", word, v.what, times(v.got, v.known), sign, v.floor)
	}
	return good
}
