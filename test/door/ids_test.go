package door

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
)

// TestRequestsWithTheSameIDGetTheirOwnAnswers plays a client that numbers every request 1 and shares one session
// between conversations. The second request is answered first.
func TestRequestsWithTheSameIDGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, `{"stream_after":"100ms"}`)
	for _, e := range eras {
		c := p.Client(e.era)
		for i, pl := range places {
			t.Run(e.name+", "+pl.name, func(t *testing.T) {
				tool := fmt.Sprintf("up%d__hold", i)
				one, two := e.name+" one", e.name+" two"
				hold := func(word string) <-chan testmcp.Answer {
					return later(c, "1", "tools/call", testmcp.ToolParams(tool, fmt.Sprintf(`{"text":%q,"signal":%q}`, word, word)))
				}
				first, second := hold(one), hold(two)
				recs[i].Wait(t, testmcp.Noted("holding "+one))
				recs[i].Wait(t, testmcp.Noted("holding "+two))
				recs[i].Signal(two)
				a := <-second
				wantText(t, a, two)
				select {
				case a := <-first:
					t.Errorf("the first request was answered %s although its tool still waits", a.Raw)
				default:
				}
				recs[i].Signal(one)
				b := <-first
				wantText(t, b, one)
				if string(a.ID) != "1" || string(b.ID) != "1" {
					t.Errorf("the answers have the ids %s and %s", a.ID, b.ID)
				}
			})
		}
	}
}

// TestCancelThatCouldMeanTwoRequestsEndsNeither: when two requests have one id, nobody can tell which is meant.
func TestCancelThatCouldMeanTwoRequestsEndsNeither(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := p.Client(testmcp.Legacy)
	one := later(c, "1", "tools/call", testmcp.ToolParams("up__hold", `{"text":"one","signal":"one"}`))
	two := later(c, "1", "tools/call", testmcp.ToolParams("up__hold", `{"text":"two","signal":"two"}`))
	rec.Wait(t, testmcp.Noted("holding one"))
	rec.Wait(t, testmcp.Noted("holding two"))
	if status := c.CancelID("1"); status != 202 {
		t.Errorf("the cancel was answered with HTTP %d", status)
	}
	rec.Signal("one")
	wantText(t, <-one, "one")
	// Now there is one request left that the id can mean.
	c.CancelID("1")
	rec.Wait(t, testmcp.Is(testmcp.Cancel))
	if a := <-two; a.Result() != nil {
		t.Errorf("the cancelled request was answered %s", a.Raw)
	}
	if n := rec.Count(testmcp.Is(testmcp.Cancel)); n != 1 {
		t.Errorf("%d calls were cancelled at the upstream, want 1", n)
	}
}

// TestFiveThousandAnswersReachTheirOwnClients: 20 clients of both eras number their requests from 1, integers and
// strings at the same time, 5 at a time each, over one connection to each upstream that answers in random order.
func TestFiveThousandAnswersReachTheirOwnClients(t *testing.T) {
	t.Parallel()
	const clients, numbers, atATime = 20, 125, 5
	p, _ := everywhere(t, "")
	var all sync.WaitGroup
	for n := range clients {
		c := p.Client(eras[n%2].era)
		ids := make(chan string, 2*numbers)
		for i := 1; i <= numbers; i++ {
			ids <- strconv.Itoa(i)
			ids <- `"` + strconv.Itoa(i) + `"`
		}
		close(ids)
		for w := range atATime {
			random := rand.New(rand.NewPCG(uint64(n), uint64(w)))
			all.Go(func() {
				for id := range ids {
					text := fmt.Sprintf("client %d, id %s", n, id)
					tool := fmt.Sprintf("up%d__later", random.IntN(len(places)))
					args := fmt.Sprintf(`{"text":%s,"ms":%d}`, testmcp.Quote(text), random.IntN(20))
					a := c.Send(id, "tools/call", testmcp.ToolParams(tool, args)).Final()
					if a.Text() != text || string(a.ID) != id {
						t.Errorf("%s of %s was answered %s (%v)", text, tool, a.Raw, a.Error)
					}
				}
			})
		}
	}
	all.Wait()
	done := p.Metrics().Sum("mcp_proxy_requests_total", "method", "tools/call", "outcome", "ok")
	if want := float64(2 * clients * numbers); done != want {
		t.Errorf("%v calls are counted as ok, want %v", done, want)
	}
}

// oddIDs are ids that clients in the field use, and some that only a careless proxy changes.
var oddIDs = []string{`"1"`, `1`, `"abc"`, `0`, `""`, `"🦀"`, `"` + strings.Repeat("x", 200) + `"`, `-5`,
	`9007199254740993`, `"init-1"`, `"\u0041"`, `"a\"b\\"`, `" 1 "`}

// TestIDsComeBackAsTheyWere: with type, value and spelling, whoever makes the answer and in whatever form.
func TestIDsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	p, _ := everywhere(t, "")
	tests := []struct{ name, method, params string }{
		{"own answer", "tools/list", "{}"},
		{"own error", "tools/call", testmcp.ToolParams("nobody__has_this", "")},
		{"unknown method", "no/such", "{}"},
		{"upstream's error", "tools/call", testmcp.ToolParams("up2__refuse", "")},
		{"stream", "tools/call", `{"_meta":{"progressToken":1},"name":"up0__says","arguments":{"text":"x"}}`},
	}
	for i := range places {
		tests = append(tests, struct{ name, method, params string }{places[i].name, "tools/call", testmcp.ToolParams(fmt.Sprintf("up%d__echo", i), `{"text":"x"}`)})
	}
	for _, e := range eras {
		c := p.Client(e.era)
		for _, tt := range tests {
			t.Run(e.name+", "+tt.name, func(t *testing.T) {
				for _, id := range oddIDs {
					if a := c.Send(id, tt.method, tt.params).Final(); string(a.ID) != id {
						t.Errorf("the request %s was answered with id %s: HTTP %d %s (%v)", id, a.ID, a.Status, a.Body, a.Error)
					}
				}
			})
		}
	}
}

// TestNumberAndStringOfTheSameDigitsAreTwoRequests: both are under way, and the cancel of one leaves the other.
func TestNumberAndStringOfTheSameDigitsAreTwoRequests(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	c := p.Client(testmcp.Legacy)
	number := later(c, `1`, "tools/call", testmcp.ToolParams("up__hold", `{"text":"number","signal":"go"}`))
	text := later(c, `"1"`, "tools/call", testmcp.ToolParams("up__hold", `{"text":"text","signal":"go"}`))
	rec.Wait(t, testmcp.Noted("holding number"))
	rec.Wait(t, testmcp.Noted("holding text"))
	c.CancelID(`"1"`)
	rec.Wait(t, testmcp.Is(testmcp.Cancel))
	rec.Signal("go")
	wantText(t, <-number, "number")
	if a := <-text; a.Result() != nil {
		t.Errorf("the cancelled request was answered %s", a.Raw)
	}
}

// TestBadIDsAreRefusedAtOnce: a request with such an id is neither taken for a notification nor rounded.
func TestBadIDsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	p, rec := one(t, "")
	for _, e := range eras {
		c := p.Client(e.era)
		for _, id := range []string{`null`, `1.5`, `true`, `false`, `{}`, `[]`, `[1]`, `1e3`, `{"a":1}`} {
			for method, params := range map[string]string{"tools/list": "{}", "tools/call": testmcp.ToolParams("up__echo", "")} {
				t.Run(e.name+", "+id+" "+method, func(t *testing.T) {
					a := c.Send(id, method, params).Final()
					wantRefusal(t, a, 400, codeInvalidRequest, "null")
					if a.Took > 5*time.Second {
						t.Errorf("the refusal took %v", a.Took)
					}
				})
			}
		}
	}
	if n := rec.Count(testmcp.Received("tools/call")); n != 0 {
		t.Errorf("%d of these requests reached the upstream", n)
	}
}

// TestClientsWithTheSameProgressTokenSeeTheirOwn: a token means something in one conversation only.
func TestClientsWithTheSameProgressTokenSeeTheirOwn(t *testing.T) {
	t.Parallel()
	p, recs := everywhere(t, "")
	for i, pl := range places {
		for _, token := range []string{`1`, `"t"`, `"1"`} {
			t.Run(pl.name+", "+token, func(t *testing.T) {
				running := map[string]*testmcp.Stream{}
				for _, e := range eras {
					for _, n := range []string{"one", "two"} {
						c, text := p.Client(e.era), e.name+" "+n
						args := fmt.Sprintf(`{"text":%q,"steps":3,"signal":%q}`, text, "go"+token)
						running[text] = c.Start("tools/call", fmt.Sprintf(`{"_meta":{"progressToken":%s},"name":"up%d__says","arguments":%s}`, token, i, args))
					}
				}
				for text, s := range running { // all are under way, each stream has begun
					s.WaitEvent(func(e testmcp.Event) bool { return e.Message().Params.At("message").Str() == text })
				}
				recs[i].Signal("go" + token)
				for text, s := range running {
					wantOwnProgress(t, s.Final(), text, token)
				}
			})
		}
	}
}

func wantOwnProgress(t *testing.T, a testmcp.Answer, text, token string) {
	t.Helper()
	wantText(t, a, text)
	seen := messages(a.Before)
	if len(seen) != 3 {
		t.Errorf("%q saw %d messages before its answer, want 3", text, len(seen))
	}
	for i, m := range seen {
		if m.Params.At("message").Str() != text || string(m.Params.At("progressToken")) != token || m.Params.At("progress").Int() != i+1 {
			t.Errorf("%q with token %s saw %s", text, token, m.Raw)
		}
	}
}
