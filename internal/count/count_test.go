package count

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// words gives the values of the constants of this package whose names begin so.
func words(t *testing.T, prefix string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "count.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, prefix) {
			word, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, word)
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("there is no constant %s…", prefix)
	}
	return out
}

// have gives all series of a registry by name and the value of this label.
func have(t *testing.T, reg *prometheus.Registry, name, label string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == label {
					out[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// Every word has a series before anything is counted, and no other word has one.
func TestEveryWordHasItsSeries(t *testing.T) {
	for _, c := range []struct {
		prefix, metric, label string
		count                 func(*Counters, string)
	}{
		{"Drop", "mcp_proxy_dropped_total", "what", (*Counters).Drop},
		{"Limit", "mcp_proxy_limit_exceeded_total", "limit", (*Counters).Limit},
		{"Repair", "mcp_proxy_repairs_total", "kind", func(c *Counters, w string) { c.Repair("up", w) }},
	} {
		reg := prometheus.NewRegistry()
		counters := New(reg)
		counters.Upstream("up")
		want := words(t, c.prefix)
		got := have(t, reg, c.metric, c.label)
		if len(got) != len(want) {
			t.Errorf("%s has %d series, want %d", c.metric, len(got), len(want))
		}
		for _, w := range want {
			if v, ok := got[w]; !ok || v != 0 {
				t.Errorf("%s of %s: there %v, %v", c.metric, w, ok, v)
			}
			c.count(counters, w)
			c.count(counters, w)
		}
		for w, v := range have(t, reg, c.metric, c.label) {
			if v != 2 {
				t.Errorf("%s of %s is %v after two", c.metric, w, v)
			}
		}
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}

func TestNoCountersCountNothing(t *testing.T) {
	var c *Counters
	c.Upstream("up")
	c.Drop(DropLog)
	c.Limit(LimitBody)
	c.Repair("up", RepairUTF8)
}
