package callers

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestMetricsDoNotGrowWithThoseWhoCall: sessions, credentials, names that do not exist and what fails make no series.
func TestMetricsDoNotGrowWithThoseWhoCall(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, testmcp.Both, testmcp.HTTPOptions{})
	p := start(t, "", map[string]string{"up": h.Entry(`"forward_caller_auth":true`)})
	one := func(i int) {
		name := fmt.Sprintf("person%d", i)
		c := client(t, p.URL, eras[i%2].era, "Authorization", "Bearer token-of-"+name, "X-Request-Id", name)
		own(t, c, "up__of-"+name)
		for _, tool := range []string{"up__common", "up__of-" + name, "up__of-nobody" + name, name} {
			c.CallTool(tool, "{}")
		}
		c.Call("resources/read", `{"uri":"note://`+name+`"}`)
		c.Start("tools/"+name, "{}").Final()
		if i%3 == 0 && eras[i%2].era == testmcp.Legacy {
			c.Delete()
		}
	}
	one(0)
	one(1)
	before := series(t, p)
	var wg sync.WaitGroup
	turns := make(chan struct{}, 8)
	for i := range 100 {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			one(i)
		})
	}
	wg.Wait()
	after := series(t, p)
	for name := range after {
		if !before[name] {
			t.Errorf("a new series: %s", name)
		}
	}
	wantUnsaid(t, p, "token-of")
}

// series are the names of all series with their labels.
func series(t *testing.T, p *testmcp.Proxy) map[string]bool {
	t.Helper()
	_, text := p.Get("/metrics")
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "} "); ok && line[0] != '#' {
			out[name] = true
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no series")
	}
	return out
}
