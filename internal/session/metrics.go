package session

import "github.com/prometheus/client_golang/prometheus"

// The kinds of streams.
const (
	streamPost = iota
	streamGet
	streamListen
	streamKinds
)

var streamWords = [streamKinds]string{streamPost: "post", streamGet: "get", streamListen: "listen"}

// collector reads the number of conversations at scrape time.
type collector struct{ m *Manager }

var (
	sessionsDesc = prometheus.NewDesc("mcp_proxy_sessions", "Sessions that are kept; the modern era has none.", []string{"era"}, nil)
	streamsDesc  = prometheus.NewDesc("mcp_proxy_streams", "Event streams that are open, by kind.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- sessionsDesc
	ch <- streamsDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(c.m.Count()), "legacy")
	ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, 0, "modern")
	for k, word := range streamWords {
		ch <- prometheus.MustNewConstMetric(streamsDesc, prometheus.GaugeValue, float64(c.m.open[k].Load()), word)
	}
}

// metrics are the counters of this room.
type metrics struct {
	revived prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		revived: prometheus.NewCounter(prometheus.CounterOpts{Name: "mcp_proxy_sessions_revived_total",
			Help: "Sessions that came to life again: after a restart, after their idle time, or because others had needed the room."}),
	}
	reg.MustRegister(m.revived)
	return m
}
