package upstream

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a call did not get its answer from the upstream; the same word stands in metric, log and error data.
type Reason string

// The reasons.
const (
	ReasonTransport   Reason = "transport_error" // the upstream answered something that is no answer
	ReasonUnavailable Reason = "unavailable"     // the call provably never left
	ReasonUncertain   Reason = "uncertain"       // the connection was lost after the call may have left
	ReasonOverloaded  Reason = "overloaded"      // one of our bounds
	ReasonDenied      Reason = "denied"          // the upstream refused the caller's own credential, or wants one
)

// Error is a failure of the path to an upstream, never an answer of it.
type Error struct {
	Upstream   string
	Reason     Reason
	RetryAfter time.Duration // zero where nothing is known
	Err        error
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failure is the last thing that went wrong with an upstream, for status pages.
type Failure struct {
	Stage   string // start, probe, handshake, list, run
	Message string
	At      time.Time
}

// stageError tells at which stage of its start an upstream failed.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.stage + ": " + e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

func atStage(stage string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{stage, err}
}

func failureOf(err error, now time.Time) *Failure {
	f := &Failure{Stage: "run", Message: err.Error(), At: now}
	var se *stageError
	if errors.As(err, &se) {
		f.Stage, f.Message = se.stage, se.err.Error()
	}
	return f
}

var (
	// ErrClosed is the cause of everything that ends because the upstream is being stopped.
	ErrClosed = errors.New("the upstream is being stopped")

	// ErrNeverSent means that a request provably did not reach the upstream.
	ErrNeverSent    = errors.New("the request did not reach the upstream")
	errSessionLost  = errors.New("the upstream no longer knows our session")
	errStayLost     = fmt.Errorf("%w, and what it kept for it is gone; the call was not carried out (reinit_on_expired_session is off)", errSessionLost)
	errFrameTooLong = errors.New("the message is longer than limits.max_frame_bytes")
	errNotSSE       = errors.New("the stream ended before the upstream said where to post messages (no endpoint event); the URL may be a streamable HTTP one")
)

// statusError is an HTTP answer that carries no JSON-RPC message.
type statusError struct {
	code int
	text string
	// challenge is what the server says about the credential it wants; nil where it says nothing, or to nobody but us.
	challenge *Challenge
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("HTTP %d", e.code)
	}
	return fmt.Sprintf("HTTP %d: %s", e.code, e.text)
}
