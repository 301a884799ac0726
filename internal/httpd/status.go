package httpd

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// The states of the whole proxy.
const (
	StatusStarting = "starting"
	StatusReady    = "ready"
	StatusDraining = "draining"
)

// Status is what /api/v1/status shows.
type Status struct {
	Status  string `json:"status"` // starting, ready or draining
	Version string `json:"version"`
	Uptime  string `json:"uptime"` // as a Go duration
	// Ready tells whether every eager upstream has had its first attempt, successful or not.
	Ready     bool       `json:"ready"`
	Sessions  int        `json:"sessions"` // legacy sessions that are alive in memory
	Upstreams []Upstream `json:"upstreams"`
	Names     []Name     `json:"names"`
	// Reload is how the last reload of the configuration went; nil before the first.
	Reload *Reload `json:"last_reload,omitempty"`
}

// Reload is one attempt to load the configuration anew.
type Reload struct {
	At         time.Time `json:"at"`
	Successful bool      `json:"successful"`
	Problems   []string  `json:"problems,omitempty"` // why it was rejected; what was loaded before goes on
}

// Upstream is one configured server.
type Upstream struct {
	ID              string         `json:"id"`
	State           string         `json:"state"`
	Transport       string         `json:"transport,omitempty"`
	Agent           string         `json:"agent,omitempty"` // its kind; empty for a server
	Era             string         `json:"era,omitempty"`
	ProtocolVersion string         `json:"protocol_version,omitempty"`
	ServerName      string         `json:"server_name,omitempty"`
	ServerVersion   string         `json:"server_version,omitempty"`
	Tools           int            `json:"tools"`
	Unapproved      int            `json:"unapproved,omitempty"` // tools that are withheld until somebody approves them
	Prompts         int            `json:"prompts"`
	Resources       int            `json:"resources"`
	LastError       *Failure       `json:"last_error,omitempty"`
	NextRetry       *time.Time     `json:"next_retry,omitempty"`
	Restarts        int            `json:"restarts"`
	Slots           map[string]int `json:"slots,omitempty"` // connections by state
	Hints           []string       `json:"hints,omitempty"`
	Stderr          []string       `json:"stderr,omitempty"` // the last lines, oldest first
}

// Failure is what went wrong last with an upstream.
type Failure struct {
	Stage   string    `json:"stage"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// Name is one name as clients see it, or one that was withheld.
type Name struct {
	Exposed  string `json:"exposed"`
	Upstream string `json:"upstream"`
	Wire     string `json:"wire"`
	Kind     string `json:"kind"`
	Length   int    `json:"length"`        // of Exposed, in bytes
	Why      string `json:"why,omitempty"` // why it is as it is, or why it is withheld
	// Effect is what a tool does by its server's word: read_only or side_effect.
	Effect string `json:"effect,omitempty"`
	// Profile is the profile that has this name; empty for the names of everything.
	Profile string `json:"profile,omitempty"`
}

// readiness is what /readyz shows. Everything but the status is for operators.
type readiness struct {
	Status    string                       `json:"status"`
	Upstreams map[string]upstreamReadiness `json:"upstreams,omitempty"`
}

type upstreamReadiness struct {
	State     string     `json:"state"`
	LastError *Failure   `json:"last_error,omitempty"`
	NextRetry *time.Time `json:"next_retry,omitempty"`
}

// status asks for the state of the proxy. Draining is decided here too, so that it shows at once.
func (d *Door) status() Status {
	s := d.opt.Status()
	if s.Version == "" {
		s.Version = d.opt.Version
	}
	if d.opt.Draining() {
		s.Status = StatusDraining
	}
	if s.Status != StatusReady {
		s.Ready = false
	}
	return s
}

func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write([]byte("ok\n"))
}

// readyz answers 200 while requests should be sent here. An upstream in trouble does not make the proxy unready: it
// would take the others away with it.
func (d *Door) readyz(detailed func(*http.Request) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := d.status()
		out := readiness{Status: s.Status}
		if detailed(r) {
			out.Upstreams = make(map[string]upstreamReadiness, len(s.Upstreams))
			for _, u := range s.Upstreams {
				out.Upstreams[u.ID] = upstreamReadiness{u.State, u.LastError, u.NextRetry}
			}
		}
		code := http.StatusServiceUnavailable
		if s.Ready {
			code = http.StatusOK
		}
		writeJSON(w, code, out)
	}
}

func (d *Door) statusJSON(w http.ResponseWriter, _ *http.Request) {
	s := d.status()
	if s.Upstreams == nil {
		s.Upstreams = []Upstream{} // a list is a list for whoever reads it
	}
	if s.Names == nil {
		s.Names = []Name{}
	}
	writeJSON(w, http.StatusOK, s)
}

func (d *Door) metricsPage() http.HandlerFunc {
	return promhttp.HandlerFor(d.opt.Registry, promhttp.HandlerOpts{
		ErrorLog:           zap.NewStdLog(d.log),
		DisableCompression: true,
	}).ServeHTTP
}

// reload loads the configuration anew and answers when that is done. The caller's patience does not decide about it: a
// reload that was begun is finished.
func (d *Door) reload(w http.ResponseWriter, r *http.Request) {
	if err := d.opt.Reload(context.WithoutCancel(r.Context())); err != nil {
		writeJSON(w, http.StatusUnprocessableEntity, map[string]string{"status": "rejected", "error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "reloaded"})
}
