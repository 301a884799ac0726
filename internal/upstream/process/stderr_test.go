package process

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcp-proxy/mcp-proxy/internal/count"
	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// plain hides nothing.
type plain struct{}

func (plain) Clip(text string, most int) string { return text[:min(len(text), most)] }

func (plain) Reach() int { return 0 }

// drained gives what the log and the memory hold after a child has written this to stderr.
func drained(t *testing.T, c *count.Counters, text string) (logged, kept []string) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	l := NewTail(zap.New(core), c, plain{})
	l.Drain(strings.NewReader(text))
	l.settle()
	for _, e := range logs.All() {
		logged = append(logged, e.ContextMap()["line"].(string))
	}
	return logged, l.Last(KeptLines)
}

func TestStderrBecomesLines(t *testing.T) {
	long := strings.Repeat("y", KeptBytes)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"one\ntwo\r\nthree", []string{"one", "two", "three"}},
		{"10%\r50%\r100%\n", []string{"10%", "50%", "100%"}},
		{"\n \n\t\n", nil},
		{long + "zzz\nnext\n", []string{long, "next"}},
		{"bad \xff byte\n", []string{"bad \uFFFD byte"}},
	} {
		logged, kept := drained(t, count.New(prometheus.NewRegistry()), c.text)
		if !slices.Equal(logged, c.want) || !slices.Equal(kept, c.want) {
			t.Errorf("%.40q: logged %.40q, kept %.40q, want %.40q", c.text, logged, kept, c.want)
		}
	}
}

func TestStderrIsBounded(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	logged, kept := drained(t, count.New(reg), strings.Repeat("line\n", 1000)+"the end\n")
	if len(kept) != KeptLines || kept[KeptLines-1] != "the end" {
		t.Errorf("%d lines are kept, the last of them %q", len(kept), kept[len(kept)-1])
	}
	if dropped := testmcp.Series(t, reg, "mcp_proxy_dropped_total", "what", count.DropStderr); len(logged) > 300 || int(dropped)+len(logged) != 1001 {
		t.Errorf("%d lines are logged and %v dropped", len(logged), dropped)
	}
}
