package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// conclude prints the tables and every difference, and says whether the run is good.
func conclude(w io.Writer, o options, rep report, expected map[kind][]expectation) error {
	tables := render(rep)
	if o.table != "" {
		if err := os.WriteFile(o.table, []byte(tables), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, tables)
	if err := sound(o, rep); err != nil {
		return err
	}
	if o.directOnly {
		fmt.Fprintln(w, "the reference server passes all checks")
		return nil
	}
	return verdict(w, o, rep, expected)
}

// sound makes sure that the yardsticks are whole: directly no failure, and as many checks and scenarios as the pinned
// suite has.
func sound(o options, rep report) error {
	for _, rev := range revisions {
		passed, failed := rep.direct[rev.name].totals()
		if passed != rev.checks || failed != 0 {
			return fmt.Errorf("revision %s directly: %d passed and %d failed, want %d and 0",
				rev.name, passed, failed, rev.checks)
		}
		if o.directOnly || rev.clientScenarios == 0 {
			continue
		}
		for _, w := range []way{legacyClient, modernClient} {
			key := runKey{asClient, rev.name, w}
			if got := len(rep.through[key]); got != rev.clientScenarios {
				return fmt.Errorf("%s: %d scenarios, want %d", key, got, rev.clientScenarios)
			}
		}
	}
	return nil
}

// verdict prints what differs. Of what was expected to, it prints how often, or with -v all.
func verdict(w io.Writer, o options, rep report, expected map[kind][]expectation) error {
	total, unexpected, unused := 0, 0, 0
	for _, k := range kinds {
		worse, others := apart(differences(rep, k))
		for _, d := range others {
			fmt.Fprintf(w, "in other words, and nothing is lost, in %s runs: %s\n", k, d)
		}
		surprises, known, stale := judge(worse, expected[k])
		for _, e := range expected[k] {
			met := slices.DeleteFunc(slices.Clone(known), func(d difference) bool { return !e.matches(d) })
			fmt.Fprintf(w, "expected in %s runs: %s: %d\n", k, e, len(met))
			if o.verbose {
				for _, d := range met {
					fmt.Fprintln(w, "   ", d)
				}
			}
		}
		for _, d := range surprises {
			fmt.Fprintln(w, "DIFFERS:", d)
		}
		for _, e := range stale {
			fmt.Fprintf(w, "STALE: an expected failure of %s runs no longer fails, remove it: %s\n", k, e)
		}
		total, unexpected, unused = total+len(known), unexpected+len(surprises), unused+len(stale)
	}
	if unexpected+unused > 0 {
		return fmt.Errorf("%w: %d differences, %d stale entries", errDiffers, unexpected, unused)
	}
	fmt.Fprintf(w, "through the proxy as it should be in %d runs, %d expected differences\n", len(runs()), total)
	return nil
}

// differences gives those of all runs of a kind. A run of the proxy as a client has nothing to be compared with: what
// does not pass there differs.
func differences(rep report, k kind) []difference {
	var out []difference
	for _, key := range runs() {
		switch {
		case key.kind != k:
		case k == asClient:
			out = append(out, faults(key, rep.through[key])...)
		default:
			out = append(out, compare(key, rep.direct[key.revision], rep.through[key])...)
		}
	}
	return out
}

// kinds lists the kinds of runs in the order in which they are made and reported.
var kinds = []kind{straight, crossed, asClient}

// ways gives the two ways of each kind.
func ways(k kind) []way {
	if k == asClient {
		return []way{legacyClient, modernClient}
	}
	return []way{overHTTP, overStdio}
}

// runs lists the runs through the proxy.
func runs() []runKey {
	var out []runKey
	for _, k := range kinds {
		for _, rev := range revisions {
			if k == asClient && rev.clientScenarios == 0 {
				continue
			}
			for _, w := range ways(k) {
				out = append(out, runKey{k, rev.name, w})
			}
		}
	}
	return out
}

// render gives Markdown tables: a row for each way, a column for each revision.
func render(rep report) string {
	var b strings.Builder
	head(&b, "way to the server")
	row(&b, "direct", func(rev string) (results, bool) { return rep.direct[rev], true })
	if len(rep.through) == 0 {
		return b.String()
	}
	names := map[kind]string{
		straight: "proxy, upstream over %s", crossed: "proxy, upstream of the other era over %s",
	}
	for _, k := range []kind{straight, crossed} {
		for _, w := range ways(k) {
			row(&b, fmt.Sprintf(names[k], w), rep.of(k, w))
		}
	}
	b.WriteString("\n")
	head(&b, "client of the suite's servers")
	for _, w := range ways(asClient) {
		row(&b, "proxy for a "+string(w)+" client", rep.of(asClient, w))
	}
	return b.String()
}

// of gives the results by revision of the runs of one kind and way.
func (rep report) of(k kind, w way) func(rev string) (results, bool) {
	return func(rev string) (results, bool) {
		r, ok := rep.through[runKey{k, rev, w}]
		return r, ok
	}
}

func head(b *strings.Builder, name string) {
	b.WriteString("| " + name + " |")
	for _, rev := range revisions {
		b.WriteString(" " + rev.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(revisions)) + "\n")
}

func row(b *strings.Builder, name string, of func(revision string) (results, bool)) {
	b.WriteString("| " + name + " |")
	for _, rev := range revisions {
		r, ok := of(rev.name)
		if !ok {
			b.WriteString(" |")
			continue
		}
		passed, failed := r.totals()
		fmt.Fprintf(b, " %d passed, %d failed in %d scenarios |", passed, failed, len(r))
	}
	b.WriteString("\n")
}
