package upstream

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// childCollector looks at the processes of children when it is asked.
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
	usage := c.set.metrics.usage
	sums, totals := usage.Look(), usage.Totals()
	for _, u := range c.set.Shown() {
		if u.cfg.Transport != config.TransportStdio && (u.cfg.Agent == nil || u.cfg.Agent.Kind != config.AgentCommand) {
			continue
		}
		s := sums[u.ID]
		ch <- prometheus.MustNewConstMetric(memoryDesc, prometheus.GaugeValue, float64(s.Memory), u.ID)
		ch <- prometheus.MustNewConstMetric(cpuDesc, prometheus.CounterValue, totals[u.ID].Seconds(), u.ID)
		ch <- prometheus.MustNewConstMetric(filesDesc, prometheus.GaugeValue, float64(s.Files), u.ID)
		ch <- prometheus.MustNewConstMetric(countDesc, prometheus.GaugeValue, float64(s.Processes), u.ID)
	}
}
