package churn

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// holdings is what the program has at a moment.
type holdings struct {
	processes, descriptors, goroutines            int
	slots, sessions, streams, inFlight, kept, rss float64
}

func (h holdings) String() string {
	return fmt.Sprintf("%d processes, %d descriptors, %d goroutines, %v slots, %v sessions, %v streams, %v calls, %v bytes for resumption, %.0f MiB",
		h.processes, h.descriptors, h.goroutines, h.slots, h.sessions, h.streams, h.inFlight, h.kept, h.rss/(1<<20))
}

func look(p *testmcp.Proxy) holdings {
	m := p.Metrics()
	fds, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.PID()), "fd"))
	return holdings{
		processes:   len(testmcp.Descendants(p.PID())),
		descriptors: len(fds),
		goroutines:  int(m.Sum("go_goroutines")),
		slots:       m.Sum("mcp_proxy_upstream_slots"),
		sessions:    m.Sum("mcp_proxy_sessions"),
		streams:     m.Sum("mcp_proxy_streams"),
		inFlight:    m.Sum("mcp_proxy_requests_in_flight"),
		kept:        m.Sum("mcp_proxy_resume_buffer_bytes"),
		rss:         float64(testmcp.RSS(p.PID())),
	}
}

// over says whether nothing is there that belongs to a client.
func (h holdings) over() bool { return h.sessions+h.streams+h.inFlight+h.kept == 0 }

// atMost says whether there is nothing beyond what there was before.
func (h holdings) atMost(before holdings) bool {
	return h.over() && h.processes == before.processes && h.slots == before.slots &&
		h.descriptors <= before.descriptors && h.goroutines <= before.goroutines+jitter
}

// jitter is by how much two counts of the goroutines may differ although nothing else does: the registry starts up to one
// for each collector while the page of metrics is made, more of them the longer the page is. Of anything that every kill
// or every reload left behind there would be more.
const jitter = 12

// rest waits until every server answers clients of both eras again, no client is known and nothing changes any more,
// and gives what the program has then.
func rest(t *testing.T, p *testmcp.Proxy, f *fleet) holdings {
	t.Helper()
	f.close.Store(true)
	defer f.close.Store(false)
	for _, u := range f.all {
		if u.web != nil { // the connections of before are gone with it
			u.web.Restart()
		}
	}
	for _, era := range []testmcp.Era{testmcp.Legacy, testmcp.Modern} {
		c := p.Client(era)
		for _, u := range f.all {
			testmcp.Eventually(t, u.name+" works", func() bool {
				return c.Try("tools/call", testmcp.ToolParams(u.name+"__echo", `{"text":"again"}`)).Text() == "again"
			})
		}
		if era == testmcp.Legacy {
			c.Delete()
		}
		c.Reconnect()
	}
	return settled(p)
}

// settled looks until nothing belongs to a client and two seconds have brought nothing less and no change, or patience
// ends.
func settled(p *testmcp.Proxy) holdings {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last, same := look(p), 0
	for end := time.Now().Add(testmcp.Patience); same < 20 && time.Now().Before(end); <-tick.C {
		now := look(p)
		fewer := now.goroutines < last.goroutines
		now.goroutines = min(now.goroutines, last.goroutines)
		last.rss = now.rss
		same++
		if fewer || now != last || !now.over() {
			same = 0
		}
		last = now
	}
	return last
}
