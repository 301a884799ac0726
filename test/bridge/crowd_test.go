package bridge

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// Many clients call at once, and each is asked about its own secret. Every answer must come back to its own call; a
// question that cannot be brought to its client is declined, by the bounds of how the server is shared, and counted.
func TestNoQuestionReachesAnotherClient(t *testing.T) {
	for _, c := range []struct {
		k       kind
		sharing string
		clients int
		refused testmcp.Era // who may be refused; Both for nobody
	}{
		{webOld, `"sharing":"shared"`, 50, testmcp.Both},
		{webNew, `"sharing":"shared"`, 50, testmcp.Both},
		{pipeNew, `"sharing":"shared"`, 50, testmcp.Both},
		{pipeOld, `"sharing":"call","instances":5`, 50, testmcp.Modern}, // the last connection is not parked away
		{pipeOld, `"sharing":"session"`, 50, testmcp.Both},
	} {
		for _, e := range eras {
			t.Run(c.k.name+", "+c.sharing+", "+e.name, func(t *testing.T) {
				p, _ := startOne(t, c.k, "asker", "", c.sharing)
				declined := askMany(t, p, e.era, c.k, c.clients)
				if declined > 0 && c.refused != e.era {
					t.Errorf("%d questions were declined", declined)
				}
				equal(t, "questions that were refused", asked(p, c.k.name, elicit, "denied"), declined)
				if c.k.era == testmcp.Legacy {
					equal(t, "questions that were answered", asked(p, c.k.name, elicit, "ok"), c.clients-declined)
				}
				equal(t, "requests under way", p.Metrics().Sum("mcp_proxy_requests_in_flight"), 0)
			})
		}
	}
}

// askMany lets clients call at once and gives how many of them were not asked.
func askMany(t *testing.T, p *testmcp.Proxy, era testmcp.Era, k kind, n int) (declined int) {
	var all []*testmcp.Client
	for range n {
		c := connect(t, p, era, nil)
		c.Answers[elicit] = func(params testmcp.Raw) string {
			return `{"action":"accept","content":{"answer":` + params.At("message").String() + `}}`
		}
		all = append(all, c)
	}
	answers := make([]testmcp.Answer, n)
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			answers[i] = c.Try("tools/call", testmcp.ToolParams(k.name+"__ask", `{"question":"secret `+strconv.Itoa(i)+`."}`))
		})
	}
	wg.Wait()
	for i, a := range answers {
		questions := all[i].Asked()
		if len(questions) == 0 && a.Text() == `{"action":"decline"}` {
			declined++
			continue
		}
		secret := "secret " + strconv.Itoa(i) + "."
		if len(questions) != 1 || !strings.HasSuffix(questions[0].Params.At("message").Str(), secret) {
			t.Errorf("client %d was asked %v", i, questions)
		}
		if !strings.Contains(a.Text(), secret) {
			t.Errorf("client %d got %s %s %v", i, a.Raw, a.Body, a.Error)
		}
	}
	return declined
}
