package proxy

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

const moreInput = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__ask","arguments":{}}}`

// An old server that demands more input in the manner of the new era gets its state and the answers back as they were; the
// client has a state of ours, that nobody else can use.
func TestAnOldServerThatDemandsMoreInput(t *testing.T) {
	for name, c := range map[string]struct{ said, theirs string }{
		"with a state":           {`"resultType":"input_required",`, `,"requestState":"their\"own\""`},
		"without one":            {`"resultType":"input_required",`, ""},
		"in a result of no kind": {`"content":[],`, `,"requestState":"s"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs := c.theirs
				demand := `"result":{` + c.said + `"inputRequests":{"step":{"method":"elicitation/create","params":{"message":"?"}}}` + theirs + `}`
				s := saying(strings.Replace(done, done[strings.Index(done, `"result"`):], demand+"}", 1))
				st := newStage(t, Options{}, withPerson, s)
				defer st.stop()
				ann, bob := askable(), askable()
				ann.Principal, bob.Principal = "ann", "bob"
				first := st.text(ann, moreInput)
				if strings.Count(first, `"resultType":"input_required"`) != 1 || strings.Contains(first, "complete") {
					t.Fatalf("the client gets %s", first)
				}
				state := st.stateIn(first)
				if !strings.HasPrefix(state, statePrefix) {
					t.Fatalf("the client gets the state %q", state)
				}
				const answers = `{"step":{"action":"accept","content":{}}}`
				for who, back := range map[*Caller]string{
					bob:       comeBack(state, answers),
					ann:       comeBack(state+"x", answers),
					askable(): comeBack(state, answers),
					{Era: ann.Era, Version: ann.Version, Caps: ann.Caps, Principal: "ann"}: strings.Replace(comeBack(state, answers), `"arguments":{}`, `"arguments":{"other":1}`, 1),
				} {
					if got := st.text(who, back); !strings.Contains(got, "-32602") {
						t.Errorf("%s comes back with another state or as another, and gets %s", who.Principal, got)
					}
				}
				st.text(ann, comeBack(state, answers))
				calls := s.received("tools/call")
				if last := calls[len(calls)-1]; len(calls) != 2 || !strings.Contains(last, `"inputResponses":`+answers) || strings.Contains(last, statePrefix) ||
					theirs != "" && !strings.Contains(last, theirs) || theirs == "" && strings.Contains(last, "requestState") {
					t.Errorf("the server got %q", calls)
				}
				time.Sleep(personTime + time.Second)
				if got := st.text(ann, comeBack(state, answers)); !strings.Contains(got, "-32602") {
					t.Errorf("too late, it gave %s", got)
				}
			})
		})
	}
}

// Where nobody may be asked, such a demand is refused.
func TestAnOldServerThatMayDemandNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := saying(`{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"step":{"method":"elicitation/create","params":{"message":"?"}}}}}`)
		st := newStage(t, Options{}, func(c *config.Server) { c.Elicitation.Mode = config.ElicitationDecline }, s)
		defer st.stop()
		if got := st.text(askable(), moreInput); !strings.Contains(got, "elicitation.mode") {
			t.Errorf("it gave %s", got)
		}
	})
}
