package upstream

import (
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// usage keeps what children have used of the processor, so that the sum of an upstream never goes back: not when a process
// is replaced, nor when one below a child ends without its parent waiting for it. A nil *usage keeps nothing.
type usage struct {
	mu    sync.Mutex
	ended map[string]time.Duration // of children that have ended, by upstream
	live  map[*child]time.Duration // the most that was seen of each
}

func newUsage() *usage {
	return &usage{ended: map[string]time.Duration{}, live: map[*child]time.Duration{}}
}

func (g *usage) begin(c *child) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[c] = 0
}

// end closes the account of a child that has been reaped. Its status holds what it has used, with all processes below it
// that have been waited for, also where nobody has ever looked.
func (g *usage) end(c *child, state *os.ProcessState) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	most, known := g.live[c]
	if !known {
		return
	}
	if state != nil {
		most = max(most, state.UserTime()+state.SystemTime())
	}
	g.ended[c.env.id] += most
	delete(g.live, c)
}

// see notes what a living child and its processes were seen to have used.
func (g *usage) see(c *child, used time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if most, known := g.live[c]; known {
		g.live[c] = max(most, used)
	}
}

// totals gives what the children of each upstream have used, those that have ended included.
func (g *usage) totals() map[string]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]time.Duration{}
	for id, d := range g.ended {
		out[id] += d
	}
	for c, d := range g.live {
		out[c.env.id] += d
	}
	return out
}

// children gives those that live.
func (g *usage) children() (all []*child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.live {
		all = append(all, c)
	}
	return all
}

func (g *usage) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ended, id)
}

// load is what the processes of a child use at one moment.
type load struct {
	processes, files int
	memory           int64 // resident bytes
	cpu              time.Duration
}

// childCollector looks at the processes of children when it is asked. A process belongs to a child if it is below it or in
// its group.
type childCollector struct{ set *Set }

var (
	memoryDesc = prometheus.NewDesc("mcp_proxy_child_memory_bytes", "Resident memory of the processes of a server.", []string{"upstream"}, nil)
	cpuDesc    = prometheus.NewDesc("mcp_proxy_child_cpu_seconds_total", "Processor time of the processes of a server, those that have ended included.", []string{"upstream"}, nil)
	filesDesc  = prometheus.NewDesc("mcp_proxy_child_open_fds", "Open file descriptors of the processes of a server.", []string{"upstream"}, nil)
	countDesc  = prometheus.NewDesc("mcp_proxy_child_processes", "Processes of a server.", []string{"upstream"}, nil)
)

// Describe implements prometheus.Collector.
func (childCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{memoryDesc, cpuDesc, filesDesc, countDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c childCollector) Collect(ch chan<- prometheus.Metric) {
	g := c.set.metrics.usage
	sums := map[string]load{}
	for of, l := range loads(g.children()) {
		g.see(of, l.cpu)
		s := sums[of.env.id]
		s.processes, s.files, s.memory = s.processes+l.processes, s.files+l.files, s.memory+l.memory
		sums[of.env.id] = s
	}
	totals := g.totals()
	for _, u := range c.set.Shown() {
		if u.cfg.Transport != config.TransportStdio && (u.cfg.Agent == nil || u.cfg.Agent.Kind != config.AgentCommand) {
			continue
		}
		s := sums[u.ID]
		ch <- prometheus.MustNewConstMetric(memoryDesc, prometheus.GaugeValue, float64(s.memory), u.ID)
		ch <- prometheus.MustNewConstMetric(cpuDesc, prometheus.CounterValue, totals[u.ID].Seconds(), u.ID)
		ch <- prometheus.MustNewConstMetric(filesDesc, prometheus.GaugeValue, float64(s.files), u.ID)
		ch <- prometheus.MustNewConstMetric(countDesc, prometheus.GaugeValue, float64(s.processes), u.ID)
	}
}
