package testmcp

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Series reads one counter or gauge of a registry: pairs are label names and values. The test fails where there is none.
func Series(t testing.TB, reg prometheus.Gatherer, name string, pairs ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	next:
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if i := slices.Index(pairs, l.GetName()); i < 0 || pairs[i+1] != l.GetValue() {
					continue next
				}
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no series %s %q", name, pairs)
	return 0
}
