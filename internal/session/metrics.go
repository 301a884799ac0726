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
	keptDesc     = prometheus.NewDesc("mcp_proxy_resume_buffer_bytes", "Bytes that are kept for clients that may come back to a stream.", nil, nil)
	streamsDesc  = prometheus.NewDesc("mcp_proxy_streams", "Event streams that are open, by kind.", []string{"kind"}, nil)
)

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- sessionsDesc
	ch <- streamsDesc
	ch <- keptDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(c.m.Count()), "legacy")
	ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, 0, "modern")
	ch <- prometheus.MustNewConstMetric(keptDesc, prometheus.GaugeValue, float64(c.m.shelf.bytes()))
	for k, word := range streamWords {
		ch <- prometheus.MustNewConstMetric(streamsDesc, prometheus.GaugeValue, float64(c.m.open[k].Load()), word)
	}
}

// metrics are the counters of this room.
type metrics struct {
	revived prometheus.Counter
	resumed [streamKinds]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		revived: prometheus.NewCounter(prometheus.CounterOpts{Name: "mcp_proxy_sessions_revived_total",
			Help: "Sessions that came to life again: after a restart, after their idle time, or because others had needed the room."}),
	}
	resumed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "mcp_proxy_streams_resumed_total",
		Help: "Streams that a client came back to after it had lost the connection, by the kind that they were."}, []string{"kind"})
	for _, k := range []int{streamPost, streamGet} {
		m.resumed[k] = resumed.WithLabelValues(streamWords[k])
	}
	reg.MustRegister(m.revived, resumed)
	return m
}
