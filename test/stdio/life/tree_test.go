package life

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// tree is a server that heeds no signal and has started others that heed none either. One holds its pipes, unless the server
// is free of that: as long as somebody has its stdout, nobody sees its end.
var _ = testmcp.Register("tree", func(args []string) *testmcp.Server {
	s := testmcp.Basic("tree")
	s.Era = stdio.Era(args)
	s.Start = func(p *testmcp.Process) {
		p.IgnoreSIGTERM()
		p.Spawn(testmcp.Spawn{Stubborn: true, HoldPipes: !slices.Contains(args, "free")})
		p.Spawn(testmcp.Spawn{Stubborn: true})
		if len(args) > 1 && args[1] == "mute" {
			p.Note("grown")
		}
	}
	if len(args) > 1 && args[1] == "mute" {
		s.On = map[string]testmcp.Handler{"server/discover": testmcp.Ignores, "initialize": testmcp.Ignores}
	}
	s.AtEOF = func(p *testmcp.Process) { p.Hang() }
	s.Tools = append(s.Tools, testmcp.SimpleTool("deafen", func(c *testmcp.Call) { c.Process().CloseStdout() }))
	return s
})

// goneAll waits until none of these processes lives.
func goneAll(t *testing.T, pids []int) {
	t.Helper()
	testmcp.Eventually(t, "end of "+strconv.Itoa(len(pids))+" processes", func() bool {
		return !slices.ContainsFunc(pids, testmcp.Alive)
	})
}

func TestNothingIsLeftOfATree(t *testing.T) {
	other := `{"command":"/no/such/program"}`
	args := map[string][]string{"deaf": {"free"}}
	for launcher, script := range map[string]string{"alone": `exec "$0" "$@"`, "below shells": testmcp.BelowShells} {
		for ending, end := range map[string]func(*testmcp.Proxy, *testmcp.Recorder){
			"stop": func(p *testmcp.Proxy, _ *testmcp.Recorder) { p.Stop() },
			"removal": func(p *testmcp.Proxy, _ *testmcp.Recorder) {
				p.WriteConfig(testmcp.Config(`{"shutdown_grace":"1s"}`, map[string]string{"other": other}))
			},
			"crash": func(p *testmcp.Proxy, _ *testmcp.Recorder) { p.Client(testmcp.Legacy).CallTool("up__crash", "") },
			"deaf":  func(p *testmcp.Proxy, _ *testmcp.Recorder) { p.Client(testmcp.Legacy).CallTool("up__deafen", "") },
		} {
			if ending == "deaf" && launcher != "alone" {
				continue // the shells have its stdout
			}
			t.Run(launcher+" "+ending, func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
					"up": rec.EntryVia(script, "tree", append([]string{"legacy"}, args[ending]...), `"restart":{"initial_delay":"1h","max_delay":"1h"}`), "other": other,
				}))
				rec.WaitN(t, 2, testmcp.Is(testmcp.Spawned))
				ready(t, p, "up")
				pids := append(testmcp.Descendants(p.PID()), rec.SpawnedPIDs()...)
				if len(pids) < 5 {
					t.Fatalf("the tree has only %v", pids)
				}
				end(p, rec)
				goneAll(t, pids)
			})
		}
	}
}

func TestNothingIsLeftOfATreeThatStartsTooSlowly(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	testmcp.StartProxy(t, testmcp.Config("", map[string]string{
		"up": rec.EntryVia(testmcp.BelowShells, "tree", []string{"legacy", "mute"}, `"connect_timeout":"3s"`, `"restart":{"initial_delay":"1h","max_delay":"1h"}`),
	}), testmcp.WithoutReady())
	rec.Wait(t, testmcp.Noted("grown"))
	rec.WaitGone(t)
	goneAll(t, rec.SpawnedPIDs())
}

// A server that can be reached no more, while its process lives on, is replaced: there is never more than one of it.
func TestAReplacedChildIsGoneBeforeTheNextOne(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("tree", []string{"legacy", "free"}, `"restart":{"initial_delay":"10ms","max_delay":"20ms"}`)}))
	for range 3 {
		ready(t, p, "up")
		p.Client(testmcp.Legacy).CallTool("up__deafen", "")
		n := rec.Count(testmcp.Is(testmcp.Start)) + 1
		rec.WaitN(t, n, testmcp.Is(testmcp.Start))
	}
	live := 0
	for _, r := range rec.All() {
		switch r.Kind {
		case testmcp.Start:
			live++
		case testmcp.Exit:
			live--
		}
		if live > 1 {
			t.Fatalf("%d run at the same time:\n%s", live, rec.Dump(40))
		}
	}
	ready(t, p, "up")
	if n := p.Metrics().Sum("mcp_proxy_child_processes", "upstream", "up"); n != 3 {
		t.Errorf("%v processes are counted, want the server and the two that it has started", n)
	}
}

// Servers that fail at once and leave something behind, with many clients that all want them.
func TestFailFastServersAreNotStartedByClients(t *testing.T) {
	t.Parallel()
	entries := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d"} {
		entries[id] = stdio.Entry("sh", []string{"-c", "echo KEY is missing >&2; sleep 300 & exit 7"}, nil, `"restart":{"initial_delay":"1h","max_delay":"1h"}`)
	}
	good := testmcp.NewRecorder(t)
	entries["good"] = good.Entry("basic", nil)
	p := testmcp.StartProxy(t, testmcp.Config("", entries))
	for range 10 {
		for _, era := range stdio.Eras {
			c := p.Client(era)
			if a := c.CallTool("good__echo", `{"text":"x"}`); a.Text() != "x" {
				t.Fatalf("the good one gives %.300s", a.Raw)
			}
			for id := range entries {
				if id != "good" {
					testmcp.Connect(t, p.Server(id), era)
				}
			}
		}
	}
	started := map[string]int{}
	for _, r := range stdio.LogRecords(p, "child started") {
		started[r.At("upstream").Str()]++
	}
	for id := range entries {
		// A server that exits is asked a second time by the other era's handshake, and that is all.
		if id != "good" && started[id] > 2 {
			t.Errorf("%s was started %d times", id, started[id])
		}
		st := stdio.UpstreamStatus(p, id)
		if why := st.At("last_error", "message").Str(); id != "good" && (!strings.Contains(why, "code 7") || !strings.Contains(why, "KEY is missing")) {
			t.Errorf("%s: the status is %s", id, st)
		}
	}
	testmcp.Eventually(t, "end of what they have left", func() bool { return len(testmcp.Descendants(p.PID())) == 1 })
}
