// Package count holds the counters that more than one room increments: what was dropped, which bounds were met, and
// what was repaired. Their labels are closed sets. It is a leaf.
package count

import "github.com/prometheus/client_golang/prometheus"

// What may be dropped.
const (
	DropNoise        = "stdout_noise"     // a line of a child that is no message
	DropStderr       = "stderr_line"      // a line of a child's stderr beyond the rate
	DropProgress     = "progress"         // progress that was merged, or for nobody
	DropLog          = "log"              // a log message for nobody, or beyond the mailbox
	DropNotification = "notification"     // a notification that has no taker
	DropAnswer       = "answer"           // an answer to a request that nobody waits for
	DropClientSlow   = "client_slow"      // a frame for a client that does not read
	DropRequest      = "upstream_request" // a request of an upstream that was refused
)

// The bounds that are counted when they are met.
const (
	LimitBody      = "body"
	LimitBodyTime  = "body_time" // bodies that were sent too slowly
	LimitFrame     = "frame"
	LimitDepth     = "depth"
	LimitSessions  = "sessions"
	LimitStreams   = "streams"
	LimitInFlight  = "in_flight"
	LimitBuffered  = "buffered_bytes"
	LimitPages     = "pages"
	LimitItems     = "items"
	LimitMembers   = "members"
	LimitBatch     = "batch"
	LimitSlots     = "slots"
	LimitMailbox   = "mailbox"
	LimitParked    = "parked"
	LimitQueue     = "queue"
	LimitListens   = "listens"
	LimitSSEEvents = "sse_event"
	LimitRevoked   = "revoked_sessions" // ended sessions that are remembered
	LimitResume    = "resume_buffer"    // what is kept for clients that come back
	LimitResult    = "result_size"      // results of tools that were over max_result_size
	LimitKept      = "kept_results"     // results that were not kept, or not for as long as they should be
	LimitOverlays  = "catalog_overlays" // lists of single callers that are kept
)

// The repairs that are made.
const (
	RepairInputSchema  = "input_schema"
	RepairOutputSchema = "output_schema"
	RepairStructured   = "structured_content"
	RepairContent      = "content"
	RepairUTF8         = "utf8"
	RepairEnvelope     = "envelope"      // a missing version, or members that are null and say nothing
	RepairToolLeftOut  = "item_left_out" // an item that no client could accept
	RepairNullMember   = "null_member"   // an optional member that is null
	RepairLabel        = "label"         // the name of the asking upstream before its question
)

// Counters are the shared counters. A nil *Counters counts nothing.
type Counters struct {
	dropped *prometheus.CounterVec
	limits  *prometheus.CounterVec
	repairs *prometheus.CounterVec
}

// New registers the counters; every series that needs no upstream is there from the first scrape.
func New(reg prometheus.Registerer) *Counters {
	c := &Counters{
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_dropped_total", Help: "Messages that were dropped, by kind."}, []string{"what"}),
		limits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_limit_exceeded_total", Help: "Requests, frames and connections that met a configured bound."}, []string{"limit"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcp_proxy_repairs_total", Help: "Changes made to what an upstream sent so that clients accept it."}, []string{"upstream", "kind"}),
	}
	reg.MustRegister(c.dropped, c.limits, c.repairs)
	for _, w := range []string{DropNoise, DropStderr, DropProgress, DropLog, DropNotification, DropAnswer, DropClientSlow, DropRequest} {
		c.dropped.WithLabelValues(w)
	}
	for _, l := range []string{LimitBody, LimitBodyTime, LimitFrame, LimitDepth, LimitSessions, LimitStreams, LimitInFlight, LimitBuffered, LimitPages,
		LimitItems, LimitMembers, LimitBatch, LimitSlots, LimitMailbox, LimitParked, LimitQueue, LimitListens, LimitSSEEvents, LimitRevoked, LimitResume,
		LimitResult, LimitKept, LimitOverlays} {
		c.limits.WithLabelValues(l)
	}
	return c
}

// Upstream creates the series of one upstream.
func (c *Counters) Upstream(id string) {
	if c == nil {
		return
	}
	for _, k := range []string{RepairInputSchema, RepairOutputSchema, RepairStructured, RepairContent, RepairUTF8, RepairEnvelope, RepairToolLeftOut, RepairNullMember,
		RepairLabel} {
		c.repairs.WithLabelValues(id, k)
	}
}

// Forget deletes the series of an upstream that there is no more.
func (c *Counters) Forget(id string) {
	if c != nil {
		c.repairs.DeletePartialMatch(prometheus.Labels{"upstream": id})
	}
}

// Drop counts something dropped.
func (c *Counters) Drop(what string) {
	if c != nil {
		c.dropped.WithLabelValues(what).Inc()
	}
}

// Limit counts a bound that was met.
func (c *Counters) Limit(name string) {
	if c != nil {
		c.limits.WithLabelValues(name).Inc()
	}
}

// Repair counts a repair of what an upstream sent.
func (c *Counters) Repair(upstream, kind string) {
	if c != nil {
		c.repairs.WithLabelValues(upstream, kind).Inc()
	}
}
