package proxy

import "github.com/mcp-proxy/mcp-proxy/internal/upstream"

// Outcome is how a request ended; the same word stands in metric, log and error.
type Outcome string

// The outcomes.
const (
	OK             Outcome = "ok"
	ToolError      Outcome = "tool_error"
	RPCError       Outcome = "rpc_error"
	Timeout        Outcome = "timeout"
	Cancelled      Outcome = "cancelled"
	ClientGone     Outcome = "client_gone"
	TransportError         = Outcome(upstream.ReasonTransport)
	Unavailable            = Outcome(upstream.ReasonUnavailable)
	Overloaded             = Outcome(upstream.ReasonOverloaded)
	Denied         Outcome = "denied"
	Invalid        Outcome = "invalid"
	Uncertain              = Outcome(upstream.ReasonUncertain)
)

var outcomes = []Outcome{OK, ToolError, RPCError, Timeout, Cancelled, ClientGone, TransportError, Unavailable, Overloaded, Denied, Invalid, Uncertain}

// Cause is why a request was cancelled. It is the cause of the request's context.
type Cause string

// The causes.
const (
	CauseClient       Cause = "client"
	CauseClientGone   Cause = "client_gone"
	CauseInactivity   Cause = "inactivity"
	CauseMaxTime      Cause = "max_time"
	CauseSessionEnd   Cause = "session_end"
	CauseShutdown     Cause = "shutdown"
	CauseUpstreamLost Cause = "upstream_lost"
)

var causes = []Cause{CauseClient, CauseClientGone, CauseInactivity, CauseMaxTime, CauseSessionEnd, CauseShutdown, CauseUpstreamLost}

func (c Cause) Error() string {
	switch c {
	case CauseClient:
		return "the client cancelled the request"
	case CauseClientGone:
		return "the client has gone"
	case CauseInactivity:
		return "no answer and no progress within call_timeout"
	case CauseMaxTime:
		return "no answer within max_call_time"
	case CauseSessionEnd:
		return "the session has ended"
	case CauseShutdown:
		return "the proxy is stopping; the call may or may not have been carried out"
	case CauseUpstreamLost:
		return "the connection with the upstream was lost"
	}
	return string(c)
}

func (c Cause) outcome() Outcome {
	switch c {
	case CauseInactivity, CauseMaxTime:
		return Timeout
	case CauseClientGone:
		return ClientGone
	case CauseShutdown, CauseUpstreamLost:
		return Uncertain
	}
	return Cancelled
}
