package upstream

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream/process"
)

// Why a connection was made anew.
const (
	restartExit        = "exit"
	restartHandshake   = "handshake"
	restartTransport   = "transport"
	restartSessionLost = "session_lost"
	restartIdle        = "idle"
	restartReload      = "reload"
)

// restartReasons is the closed set of the label, later ones included.
var restartReasons = []string{restartExit, restartHandshake, restartTransport, restartSessionLost, restartReload, restartIdle}

var slotStates = []State{StateConnecting, StateReady, StateBusy, StateDraining, StateFailed}

// Metrics are the metrics of all upstreams. A nil *Metrics counts nothing.
type Metrics struct {
	restarts *prometheus.CounterVec
	usage    *process.Usage
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{usage: process.NewUsage(), restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcp_proxy_upstream_restarts_total", Help: "Connections with an upstream that were made anew, by reason."}, []string{"upstream", "reason"})}
	reg.MustRegister(m.restarts)
	return m
}

func (m *Metrics) init(id string) {
	if m == nil {
		return
	}
	for _, r := range restartReasons {
		m.restarts.WithLabelValues(id, r)
	}
}

// forget deletes the series of an upstream that there is no more.
func (m *Metrics) forget(id string) {
	if m != nil {
		m.restarts.DeletePartialMatch(prometheus.Labels{"upstream": id})
		m.usage.Forget(id)
	}
}

// children gives where the use of children is kept; nil where it is not.
func (m *Metrics) children() *process.Usage {
	if m == nil {
		return nil
	}
	return m.usage
}

func (m *Metrics) restarted(id, reason string) {
	if m != nil {
		m.restarts.WithLabelValues(id, reason).Inc()
	}
}

// slotCollector reads the state of the slots at scrape time, so that no bookkeeping can go wrong.
type slotCollector struct{ set *Set }

var (
	upDesc    = prometheus.NewDesc("mcp_proxy_upstream_up", "Whether an upstream has a connection that takes calls.", []string{"upstream"}, nil)
	stateDesc = prometheus.NewDesc("mcp_proxy_upstream_state", "What an upstream is at: 1 for its state, 0 for the others.", []string{"upstream", "state"}, nil)
	slotsDesc = prometheus.NewDesc("mcp_proxy_upstream_slots", "Connections of an upstream by state.", []string{"upstream", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (c slotCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- upDesc
	ch <- stateDesc
	ch <- slotsDesc
}

// Collect implements prometheus.Collector.
func (c slotCollector) Collect(ch chan<- prometheus.Metric) {
	for _, u := range c.set.Shown() {
		st := u.Status()
		ch <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, oneIf(st.Up), u.ID)
		for _, h := range Healths {
			ch <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, oneIf(st.State == h), u.ID, string(h))
		}
		for _, s := range slotStates {
			ch <- prometheus.MustNewConstMetric(slotsDesc, prometheus.GaugeValue, float64(st.Slots[s]), u.ID, string(s))
		}
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
