package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// conclude prints the table and every difference, and says whether the run is good.
func conclude(w io.Writer, o options, rep report, expected []expectation) error {
	table := render(rep)
	if o.table != "" {
		if err := os.WriteFile(o.table, []byte(table), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, table)
	if err := soundDirect(rep); err != nil {
		return err
	}
	if o.directOnly {
		fmt.Fprintln(w, "the reference server passes all checks")
		return nil
	}
	return verdict(w, rep, expected)
}

// soundDirect makes sure that the yardstick is whole: no failure, and as many checks as the pinned suite makes.
func soundDirect(rep report) error {
	for _, rev := range revisions {
		passed, failed := rep.direct[rev.name].totals()
		if passed != rev.checks || failed != 0 {
			return fmt.Errorf("revision %s directly: %d passed and %d failed, want %d and 0",
				rev.name, passed, failed, rev.checks)
		}
	}
	return nil
}

func verdict(w io.Writer, rep report, expected []expectation) error {
	var diffs []difference
	for _, key := range runs() {
		diffs = append(diffs, compare(key, rep.direct[key.revision], rep.through[key])...)
	}
	surprises, known, stale := judge(diffs, expected)
	for _, d := range known {
		fmt.Fprintln(w, "expected:", d)
	}
	for _, d := range surprises {
		fmt.Fprintln(w, "DIFFERS:", d)
	}
	for _, e := range stale {
		fmt.Fprintln(w, "STALE: an expected failure no longer fails, remove it:", e)
	}
	if len(surprises)+len(stale) > 0 {
		return fmt.Errorf("%w: %d differences, %d stale entries", errDiffers, len(surprises), len(stale))
	}
	fmt.Fprintf(w, "through the proxy as directly in %d runs, %d expected differences\n", len(runs()), len(known))
	return nil
}

// runs lists the runs through the proxy in the order in which they are reported.
func runs() []runKey {
	var out []runKey
	for _, rev := range revisions {
		for _, up := range []upstream{overHTTP, overStdio} {
			out = append(out, runKey{rev.name, up})
		}
	}
	return out
}

// render gives a Markdown table: a row for each way to the server, a column for each revision.
func render(rep report) string {
	var b strings.Builder
	b.WriteString("| way to the server |")
	for _, rev := range revisions {
		b.WriteString(" " + rev.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(revisions)) + "\n")
	row(&b, "direct", func(rev string) results { return rep.direct[rev] })
	if len(rep.through) > 0 {
		for _, up := range []upstream{overHTTP, overStdio} {
			row(&b, "proxy, upstream over "+string(up), func(rev string) results { return rep.through[runKey{rev, up}] })
		}
	}
	return b.String()
}

func row(b *strings.Builder, name string, of func(revision string) results) {
	b.WriteString("| " + name + " |")
	for _, rev := range revisions {
		r := of(rev.name)
		passed, failed := r.totals()
		fmt.Fprintf(b, " %d passed, %d failed in %d scenarios |", passed, failed, len(r))
	}
	b.WriteString("\n")
}
