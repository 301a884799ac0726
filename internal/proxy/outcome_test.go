package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/upstream"
)

func TestFaultsOfThePath(t *testing.T) {
	fault := func(r upstream.Reason, retry time.Duration) error {
		return &upstream.Error{Upstream: "up", Reason: r, RetryAfter: retry, Err: errors.New("why")}
	}
	for _, c := range []struct {
		err     error
		outcome Outcome
		want    string // of the error object, behind its code
	}{
		{fault(upstream.ReasonTransport, 0), TransportError, `"message":"up::tool: why","data":{"upstream":"up","reason":"transport_error","request_id":"r-1"}`},
		{fault(upstream.ReasonUnavailable, 1500*time.Millisecond), Unavailable, `"message":"up::tool: why","data":{"upstream":"up","reason":"unavailable","retry_after_ms":1500,"request_id":"r-1"}`},
		{fault(upstream.ReasonOverloaded, 0), Overloaded, `"message":"up::tool: why","data":{"upstream":"up","reason":"overloaded","request_id":"r-1"}`},
		{fault(upstream.ReasonUncertain, 0), Uncertain, `"message":"up::tool: why; the outcome is uncertain: it may or may not have been carried out, and it was not repeated","data":{"upstream":"up","reason":"uncertain","request_id":"r-1"}`},
		{fmt.Errorf("around: %w", fault(upstream.ReasonOverloaded, 0)), Overloaded, `"message":"up::tool: around: why"`},
		{CauseInactivity, Timeout, `"message":"up::tool: no answer and no progress within call_timeout","data":{"upstream":"up","reason":"timeout"`},
		{CauseMaxTime, Timeout, `"message":"up::tool: no answer within max_call_time"`},
		{CauseShutdown, Uncertain, `"reason":"uncertain"`},
		{CauseUpstreamLost, Uncertain, `"reason":"uncertain"`},
		{CauseClient, Cancelled, `"reason":"cancelled"`},
		{CauseSessionEnd, Cancelled, `"reason":"cancelled"`},
		{CauseClientGone, ClientGone, `"reason":"client_gone"`},
		{context.Canceled, TransportError, `"reason":"transport_error"`},
	} {
		a, o := pathFault([]byte(`"id"`), "up", "tool", "r-1", c.err)
		got := string(a.Bytes())
		if o != c.outcome || a.Code != -32603 || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":"id","error":{"code":-32603,`+c.want) && !strings.Contains(got, c.want) {
			t.Errorf("%v: %s, %s\nwant %s, %s", c.err, o, got, c.outcome, c.want)
		}
	}
}

func TestOutcomesAndCausesAreClosedSets(t *testing.T) {
	for _, c := range causes {
		if !slices.Contains(outcomes, c.outcome()) {
			t.Errorf("%s ends as %s", c, c.outcome())
		}
		if c.Error() == string(c) || c.Error() == "" {
			t.Errorf("%s says %q", c, c.Error())
		}
	}
	if len(outcomes) != 12 || len(causes) != 7 {
		t.Errorf("%d outcomes and %d causes", len(outcomes), len(causes))
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		a    Answer
		want string
	}{
		{Result([]byte(`7`), []byte(`{"a":1}`)), `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`},
		{Failure(nil, -32700, `"quoted"`, nil), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"\"quoted\""}}`},
		{Failure([]byte(`"x"`), 5, "m", []byte(`[]`)), `{"jsonrpc":"2.0","id":"x","error":{"code":5,"message":"m","data":[]}}`},
		{Whole([]byte(`[1]`)), `[1]`},
	} {
		if got := string(c.a.Bytes()); got != c.want || c.a.Len() != len(c.want) {
			t.Errorf("got %s (%d bytes), want %s", got, c.a.Len(), c.want)
		}
		joined := ""
		for _, p := range c.a.Parts() {
			joined += string(p)
		}
		if joined != c.want {
			t.Errorf("the parts give %s", joined)
		}
	}
}
