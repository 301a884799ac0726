package door

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// The flood is more than the sockets of a connection and the proxy keep for a client that does not read.
const (
	floodPiece = 64 << 10
	floodCount = 500
)

func flooding([]string) *testmcp.Server {
	s := testmcp.Basic("flood")
	s.Quiet = true // what it sends is known
	s.Tools = append(s.Tools, testmcp.SimpleTool("flood", func(c *testmcp.Call) {
		text := strings.Repeat("x", floodPiece)
		for i := range floodCount {
			c.Progress(float64(i+1), floodCount, text)
		}
		c.Note("flooded")
		c.Text("flooded")
	}))
	return s
}

var _ = testmcp.Register("flood", flooding)

// TestClientThatDoesNotReadDelaysNobody: a child floods progress for it, and the calls of others to the same child are
// answered meanwhile. What it does not read is dropped and counted, but not its answer.
func TestClientThatDoesNotReadDelaysNobody(t *testing.T) {
	t.Parallel()
	const small = 5 * time.Second // what the proxy allows a write is three times that
	rec := testmcp.NewRecorder(t)
	p := start(t, "", map[string]string{"up": rec.Entry("flood", nil)})
	other := p.Client(testmcp.Modern)
	for _, e := range eras {
		t.Run(e.name, func(t *testing.T) {
			before := dropped(p)
			c := p.Client(e.era)
			c.HoldReading = true
			stalled := c.Start("tools/call", `{"_meta":{"progressToken":1},"name":"up__flood"}`)
			var worst time.Duration
			calls, flooded := 0, rec.Count(testmcp.Noted("flooded"))
			testmcp.Eventually(t, "flood that is dropped", func() bool {
				calls++
				a := other.CallTool("up__echo", `{"text":"x"}`)
				wantText(t, a, "x")
				worst = max(worst, a.Took)
				return rec.Count(testmcp.Noted("flooded")) > flooded && dropped(p) > before
			})
			if worst > small {
				t.Errorf("the slowest of %d calls of another client took %v", calls, worst)
			}
			stalled.Resume()
			a := stalled.Final()
			wantText(t, a, "flooded")
			wantRising(t, a.Before)
		})
	}
}

// dropped counts what was dropped because nobody reads it.
func dropped(p *testmcp.Proxy) float64 {
	return p.Metrics().Sum("mcp_proxy_dropped_total", "what", "progress")
}

// wantRising: what is left of the progress comes in its order.
func wantRising(t *testing.T, events []testmcp.Event) {
	t.Helper()
	last, n := 0, 0
	for _, m := range messages(events) {
		if m.Method != "notifications/progress" {
			continue
		}
		if step := m.Params.At("progress").Int(); step <= last {
			t.Errorf("step %d came after step %d", step, last)
		} else {
			last = step
		}
		n++
	}
	if n == 0 || n == floodCount || last != floodCount {
		t.Errorf("%d of %d steps came, the last of them is %d", n, floodCount, last)
	}
}
