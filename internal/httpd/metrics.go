package httpd

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Where the door refuses a request: the label of mcp_proxy_http_refused_total. Breached limits are counted elsewhere.
const (
	refusedHost         = "host"
	refusedOrigin       = "origin"
	refusedNoCredential = "no_credential"
	refusedCredential   = "bad_credential"
	refusedProfile      = "profile"
)

type metrics struct {
	refused map[string]prometheus.Counter // complete, read-only
	panics  prometheus.Counter
}

// newMetrics registers the metrics of the door, or finds those of an earlier door on the same registry.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	refused, err := register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mcp_proxy_http_refused_total",
		Help: "HTTP requests that were refused before they reached the protocol, by reason.",
	}, []string{"reason"}))
	if err != nil {
		return nil, err
	}
	panics, err := register(reg, prometheus.NewCounter(prometheus.CounterOpts{
		Name: "mcp_proxy_http_panics_total",
		Help: "Panics in handlers of HTTP requests. Each is a bug; the log has the stack.",
	}))
	if err != nil {
		return nil, err
	}
	m := &metrics{refused: map[string]prometheus.Counter{}, panics: panics}
	for _, reason := range []string{refusedHost, refusedOrigin, refusedNoCredential, refusedCredential, refusedProfile} {
		m.refused[reason] = refused.WithLabelValues(reason)
	}
	return m, nil
}

func register[C prometheus.Collector](reg prometheus.Registerer, c C) (C, error) {
	err := reg.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if old, ok := already.ExistingCollector.(C); ok {
			return old, nil
		}
	}
	return c, err
}
