package proxy

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ourselves is the label of what the proxy answers without an upstream.
const ourselves = "_proxy"

// methods is the closed set of the method label; anything else is "other", so that a caller cannot make series.
var methods = []string{
	"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
	"resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete",
	"logging/setLevel", "subscriptions/listen", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "other",
}

// routed are the methods that go to upstreams; their series exist from the first scrape.
var routed = []string{"tools/call", "prompts/get", "resources/read", "completion/complete"}

// Metrics are the metrics of requests.
type Metrics struct {
	requests      *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	atUpstream    *prometheus.HistogramVec
	queue         *prometheus.HistogramVec
	inFlight      *prometheus.GaugeVec
	cancellations *prometheus.CounterVec
	asks          *prometheus.CounterVec

	tasks  sync.Map     // taskSeries → *series
	mu     sync.RWMutex // guards the maps: a reload changes them
	series map[string]map[string]*series
	flight map[string]prometheus.Gauge
}

// series are the resolved metrics of one upstream and method, so that a call looks up no labels.
type series struct {
	outcomes                    map[Outcome]prometheus.Counter
	duration, atUpstream, queue prometheus.Observer
}

var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewMetrics registers the metrics and makes the series of these upstreams.
func NewMetrics(reg prometheus.Registerer, upstreams []string) *Metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"upstream", "method"})
	}
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_requests_total", Help: "Requests of clients by how they ended."}, []string{"upstream", "method", "outcome"}),
		duration:   histogram("mcp_proxy_request_duration_seconds", "Time from a request of a client to its answer."),
		atUpstream: histogram("mcp_proxy_upstream_duration_seconds", "Part of the request duration that the upstream took."),
		queue:      histogram("mcp_proxy_queue_duration_seconds", "Part of the request duration spent waiting for a connection."),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "mcp_proxy_requests_in_flight", Help: "Requests that have no answer yet."}, []string{"upstream"}),
		cancellations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_cancellations_total", Help: "Requests to upstreams that were cancelled, by cause."}, []string{"upstream", "cause"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_server_requests_total", Help: "Requests of upstreams to clients, by how they ended."}, []string{"upstream", "method", "outcome"}),
		series: map[string]map[string]*series{}, flight: map[string]prometheus.Gauge{},
	}
	reg.MustRegister(m.requests, m.duration, m.atUpstream, m.queue, m.inFlight, m.cancellations, m.asks)
	m.keep(append([]string{ourselves}, upstreams...))
	return m
}

// keep makes the series of upstreams that have none.
func (m *Metrics) keep(upstreams []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, up := range upstreams {
		if m.series[up] == nil {
			m.add(up)
		}
	}
}

// forget deletes the series of an upstream that there is no more.
func (m *Metrics) forget(up string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.series, up)
	delete(m.flight, up)
	for _, method := range routedTasks {
		m.tasks.Delete(taskSeries{up, method})
	}
	of := prometheus.Labels{"upstream": up}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.requests, m.duration, m.atUpstream, m.queue, m.inFlight, m.cancellations, m.asks} {
		v.DeletePartialMatch(of)
	}
}

// flying is the gauge of the requests of an upstream that have no answer yet.
func (m *Metrics) flying(up string) prometheus.Gauge {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if g := m.flight[up]; g != nil {
		return g
	}
	return m.flight[ourselves]
}

func (m *Metrics) add(up string) {
	m.flight[up] = m.inFlight.WithLabelValues(up)
	m.series[up] = map[string]*series{}
	names := routed
	if up == ourselves {
		names = methods
	} else {
		for _, c := range causes {
			m.cancellations.WithLabelValues(up, string(c))
		}
		for _, method := range askMethods {
			for _, o := range askOutcomes {
				m.asks.WithLabelValues(up, method, string(o))
			}
		}
	}
	for _, method := range names {
		m.series[up][method] = m.newSeries(up, method)
	}
}

func (m *Metrics) newSeries(up, method string) *series {
	s := &series{outcomes: map[Outcome]prometheus.Counter{}, duration: m.duration.WithLabelValues(up, method)}
	if up != ourselves {
		s.atUpstream, s.queue = m.atUpstream.WithLabelValues(up, method), m.queue.WithLabelValues(up, method)
	}
	for _, o := range outcomes {
		s.outcomes[o] = m.requests.WithLabelValues(up, method, string(o))
	}
	return s
}

// of finds the series of a request.
func (m *Metrics) of(up, method string) *series {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.series[up]
	if s == nil {
		s = m.series[ourselves]
	}
	if one := s[method]; one != nil {
		return one
	}
	if one := m.ofTask(up, method); one != nil {
		return one
	}
	return m.series[ourselves]["other"]
}

// What upstreams may ask, and how that ends.
var (
	askMethods  = []string{methodElicit, methodSample, methodRoots, "other"}
	askOutcomes = []Outcome{OK, RPCError, Timeout, Cancelled, Denied, Invalid}
)

// serverRequest counts a request of an upstream.
func (m *Metrics) serverRequest(up, method string, o Outcome) {
	if !slices.Contains(askMethods, method) {
		method = "other"
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.series[up] != nil { // one that there is no more must not come back as a series
		m.asks.WithLabelValues(up, method, string(o)).Inc()
	}
}

func (m *Metrics) cancelled(up string, c Cause) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.series[up] != nil {
		m.cancellations.WithLabelValues(up, string(c)).Inc()
	}
}

// record notes how a request ended.
func (s *series) record(o Outcome, took time.Duration) {
	s.outcomes[o].Inc()
	s.duration.Observe(took.Seconds())
}

// itemCollector counts the catalog at scrape time.
type itemCollector struct{ p *Proxy }

var unapprovedDesc = prometheus.NewDesc("mcp_proxy_tools_unapproved", "Tools of a pinned server that are withheld until somebody approves them.", []string{"upstream"}, nil)

var itemsDesc = prometheus.NewDesc("mcp_proxy_catalog_items", "Items that an upstream offers through the proxy, by kind.", []string{"upstream", "kind"}, nil)

var overlaysDesc = prometheus.NewDesc("mcp_proxy_catalog_overlays", "Lists of an upstream that are kept for single callers, where they depend on who asks.", []string{"upstream"}, nil)

// Describe implements prometheus.Collector.
func (c itemCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- itemsDesc
	ch <- unapprovedDesc
	ch <- overlaysDesc
}

// Collect implements prometheus.Collector.
func (c itemCollector) Collect(ch chan<- prometheus.Metric) {
	for id, n := range c.p.overlays.counts() {
		ch <- prometheus.MustNewConstMetric(overlaysDesc, prometheus.GaugeValue, float64(n), id)
	}
	for id, n := range c.p.Counts() {
		for k := range kinds {
			ch <- prometheus.MustNewConstMetric(itemsDesc, prometheus.GaugeValue, float64(n[k]), id, k.String())
		}
	}
	for id, n := range c.p.Unapproved() {
		ch <- prometheus.MustNewConstMetric(unapprovedDesc, prometheus.GaugeValue, float64(n), id)
	}
}
