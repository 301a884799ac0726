package bridge

import (
	"fmt"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// crowd is how many clients call at once. Each is asked about a secret of its own and answers in its own name.
const crowd = 50

// Fifty clients call at once on connections that all of them share, and are asked while none of the calls has ended. Where
// a question says which call it belongs to, each client is asked its own, and its answer comes back to its own call.
func TestNoQuestionReachesAnotherClient(t *testing.T) {
	for _, c := range []struct {
		k       kind
		sharing string
	}{
		{webOld, `"sharing":"shared"`},
		{webNew, `"sharing":"shared"`},
		{pipeNew, `"sharing":"shared","instances":5`},
	} {
		for _, e := range eras {
			t.Run(c.k.name+", "+c.sharing+", "+e.name, func(t *testing.T) {
				p, rec := startOne(t, c.k, "asker", "", c.sharing)
				rec.Signal("go on")
				all := newCrowd(t, p, e.era, c.k)
				answers := all.call(func() {
					rec.WaitN(t, crowd, testmcp.CalledTool("ask-together"))
					rec.Signal("ask")
				})
				equal(t, "questions that were declined", all.check(t, answers), 0)
				all.counted(t, 0, crowd)
			})
		}
	}
}

// On a few connections to a server of the old era whose calls share a channel nothing says so: while ten calls are under way
// on each, every question is refused, counted, and the status says what helps. Of clients that call one after the other each
// is asked its own.
func TestNoQuestionOfACrowdIsGuessed(t *testing.T) {
	for _, k := range sharedChannels {
		for _, e := range eras {
			t.Run(k.name+", "+e.name, func(t *testing.T) {
				p, rec := startOne(t, k, "asker", "", `"sharing":"shared","instances":5`)
				all := newCrowd(t, p, e.era, k)
				testmcp.Eventually(t, "all connections", func() bool {
					return p.Metrics().Sum("mcp_proxy_upstream_slots", "upstream", k.name, "state", "ready") == 5
				})
				answers := all.call(func() {
					rec.WaitN(t, crowd, testmcp.CalledTool("ask-together"))
					rec.Signal("ask")
					rec.WaitFor(t, "an answer to each question", func() bool { return len(answersOf(rec)) == crowd })
					rec.Signal("go on")
				})
				equal(t, "questions that were declined", all.check(t, answers), crowd)
				all.counted(t, crowd, 0)
				hint := p.Status().At("upstreams", 0, "hints", 0).Str()
				holds(t, "the hint", hint, fmt.Sprint(crowd, " of its questions were refused"), `"sharing": "session"`)
				const few = 10
				for i := range few {
					answers[i] = all.one(i)
				}
				equal(t, "questions that were declined of calls that are alone", all.check(t, answers[:few]), 0)
				all.counted(t, crowd, few)
			})
		}
	}
}

// Where each conversation or each call has a connection for itself, a crowd is asked on pipes to such a server too. A
// question may be declined only where as many calls wait for their clients to come back as may, and that is said.
func TestACrowdIsAskedOnConnectionsOfTheirOwn(t *testing.T) {
	for _, sharing := range []string{`"sharing":"session"`, `"sharing":"call","instances":5`} {
		for _, e := range eras {
			t.Run(sharing+", "+e.name, func(t *testing.T) {
				p, rec := startOne(t, pipeOld, "asker", "", sharing)
				rec.Signal("ask")
				rec.Signal("go on")
				all := newCrowd(t, p, e.era, pipeOld)
				declined := all.check(t, all.call(func() {}))
				all.counted(t, declined, crowd-declined)
				hints := p.Status().At("upstreams", 0, "hints").String()
				switch {
				case declined == 0:
					equal(t, "hints", hints, "")
				case e.era == testmcp.Legacy:
					t.Errorf("%d questions were declined", declined)
				default:
					holds(t, "the hints", hints, fmt.Sprint(declined, " of its questions were refused"), `\"instances\"`)
				}
			})
		}
	}
}

// crowded are the clients, and the server that asks them.
type crowded struct {
	p       *testmcp.Proxy
	k       kind
	era     testmcp.Era
	clients []*testmcp.Client
	seen    []int // how many questions each had been asked when it was last looked at
}

func newCrowd(t *testing.T, p *testmcp.Proxy, era testmcp.Era, k kind) *crowded {
	t.Helper()
	all := &crowded{p: p, k: k, era: era, seen: make([]int, crowd)}
	for i := range crowd {
		c := connect(t, p, era, nil)
		c.Answers[elicit] = func(params testmcp.Raw) string {
			return answerOf(i, params.At("message").Str())
		}
		all.clients = append(all.clients, c)
	}
	return all
}

// answerOf is the answer of one client to the question that it is shown.
func answerOf(i int, question string) string {
	return `{"action":"accept","content":{"answer":` + testmcp.Quote(fmt.Sprint(question, " says ", i)) + `}}`
}

func secretOf(i int) string { return fmt.Sprint("secret ", i, "?") }

func (all *crowded) one(i int) testmcp.Answer {
	return all.clients[i].Try("tools/call", testmcp.ToolParams(all.k.name+"__ask-together", `{"question":`+testmcp.Quote(secretOf(i))+`}`))
}

// call lets every client call at once, and gives what came of it. meanwhile runs beside the calls.
func (all *crowded) call(meanwhile func()) []testmcp.Answer {
	answers := make([]testmcp.Answer, crowd)
	var wg sync.WaitGroup
	for i := range all.clients {
		wg.Go(func() { answers[i] = all.one(i) })
	}
	meanwhile()
	wg.Wait()
	return answers
}

// check looks at what every client was asked and got, and gives how many were not asked, so that the server was told that
// they decline.
func (all *crowded) check(t *testing.T, answers []testmcp.Answer) (declined int) {
	t.Helper()
	for i, a := range answers {
		questions := all.clients[i].Asked()[all.seen[i]:]
		all.seen[i] += len(questions)
		if len(questions) == 0 && a.Text() == `{"action":"decline"}` {
			declined++
			continue
		}
		want := "[" + all.k.name + "] " + secretOf(i)
		if len(questions) != 1 || questions[0].Params.At("message").Str() != want {
			t.Errorf("client %d was asked %v", i, questions)
		}
		if a.Text() != answerOf(i, want) {
			t.Errorf("client %d got %s %s %v", i, a.Raw, a.Body, a.Error)
		}
	}
	return declined
}

// counted looks at the numbers of all questions so far, and that nothing is left of the calls. What a new server asks a new
// client is between the two.
func (all *crowded) counted(t *testing.T, refused, answered int) {
	t.Helper()
	if all.era == testmcp.Modern && all.k.era == testmcp.Modern {
		answered = 0
	}
	equal(t, "questions that are counted as refused", asked(all.p, all.k.name, elicit, "denied"), refused)
	equal(t, "questions that are counted as answered", asked(all.p, all.k.name, elicit, "ok"), answered)
	sum := int(all.p.Metrics().Sum("mcp_proxy_server_requests_total", "upstream", all.k.name))
	equal(t, "questions that are counted", sum, refused+answered)
	equal(t, "requests under way", all.p.Metrics().Sum("mcp_proxy_requests_in_flight"), 0)
}
