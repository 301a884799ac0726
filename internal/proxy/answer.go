package proxy

import (
	"errors"
	"strconv"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
	"github.com/mcp-proxy/mcp-proxy/internal/wire"
)

// Answer is one complete response frame, in up to three parts so that a large pre-rendered result is never copied.
type Answer struct {
	parts [3][]byte
	// Code is the JSON-RPC error code; zero for a result.
	Code  int
	frame *wire.Frame // that the parts are of; nil where they are our own
	// Ended says that the client cancelled: nothing more may be sent for this request.
	Ended bool
	// Outcome is how the request ended.
	Outcome Outcome
	// Unknown says that it is about something that is not there, or not for this caller.
	Unknown bool
	// Status is the HTTP status that says what the answer says, and Authenticate the WWW-Authenticate headers that go with
	// it; zero for none. They matter only where nothing has been written yet.
	Status       int
	Authenticate []string
}

// Parts gives the pieces of the frame in their order.
func (a *Answer) Parts() [3][]byte { return a.parts }

// Len is the length of the frame in bytes.
func (a *Answer) Len() int { return len(a.parts[0]) + len(a.parts[1]) + len(a.parts[2]) }

// Bytes gives the frame in one piece.
func (a *Answer) Bytes() []byte {
	if a.parts[1] == nil && a.parts[2] == nil {
		return a.parts[0]
	}
	out := make([]byte, 0, a.Len())
	for _, p := range a.parts {
		out = append(out, p...)
	}
	return out
}

// Result makes an answer with this result.
func Result(id, result []byte) Answer {
	head := make([]byte, 0, len(id)+32)
	head = append(append(append(head, `{"jsonrpc":"2.0","id":`...), id...), `,"result":`...)
	return Answer{parts: [3][]byte{head, result, {'}'}}}
}

// Failure makes an error answer. data may be nil; an empty id stands for one that could not be read.
func Failure(id []byte, code int, message string, data []byte) Answer {
	if len(id) == 0 {
		id = []byte("null")
	}
	b := make([]byte, 0, 96+len(message)+len(data))
	b = append(append(b, `{"jsonrpc":"2.0","id":`...), id...)
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), int64(code), 10)
	b = wire.AppendString(append(b, `,"message":`...), message)
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return Answer{parts: [3][]byte{append(b, "}}"...)}, Code: code}
}

// pathFault is the answer for a fault of the way to an upstream, which is never the upstream's own error.
func pathFault(id []byte, up, target, requestID string, err error) (Answer, Outcome) {
	outcome, retry := TransportError, int64(0)
	var ue *upstream.Error
	var cause Cause
	switch {
	case errors.As(err, &cause):
		outcome = cause.outcome()
	case errors.As(err, &ue):
		outcome, retry = Outcome(ue.Reason), ue.RetryAfter.Milliseconds()
	}
	data := wire.AppendString([]byte(`{"upstream":`), up)
	data = wire.AppendString(append(data, `,"reason":`...), string(outcome))
	if retry > 0 {
		data = strconv.AppendInt(append(data, `,"retry_after_ms":`...), retry, 10)
	}
	data = append(wire.AppendString(append(data, `,"request_id":`...), requestID), '}')
	text := up + "::" + target + ": " + err.Error()
	if outcome == Uncertain {
		text += "; the outcome is uncertain: it may or may not have been carried out, and it was not repeated"
	}
	return Failure(id, wire.CodeInternal, text, data), outcome
}

// Release gives the memory of the answer back. Nothing of it may be used afterwards.
func (a *Answer) Release() {
	a.parts = [3][]byte{}
	if a.frame != nil {
		wire.PutFrame(a.frame)
		a.frame = nil
	}
}

// Whole makes an answer of a complete frame.
func Whole(frame []byte) Answer { return Answer{parts: [3][]byte{frame}} }
