package app

import "github.com/prometheus/client_golang/prometheus"

// metrics tell how the last loading of the configuration went; that of the start was successful.
type metrics struct {
	successful prometheus.Gauge
	at         prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		successful: prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcp_proxy_config_last_reload_successful",
			Help: "Whether the configuration was good when it was last read."}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{Name: "mcp_proxy_config_last_reload_success_timestamp_seconds",
			Help: "When a configuration was last read that was good."}),
	}
	reg.MustRegister(m.successful, m.at)
	m.loaded(true)
	return m
}

func (m *metrics) loaded(ok bool) {
	if !ok {
		m.successful.Set(0)
		return
	}
	m.successful.Set(1)
	m.at.SetToCurrentTime()
}
