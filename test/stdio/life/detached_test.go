package life

import (
	"strings"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// worker ends only when its stdin ends, and not at once: it has work to finish.
var _ = testmcp.Register("worker", func(args []string) *testmcp.Server {
	s := testmcp.Basic("worker")
	s.Era = stdio.Era(args)
	if len(args) > 1 && args[1] == "mute" {
		s.On = map[string]testmcp.Handler{"server/discover": testmcp.Ignores, "initialize": testmcp.Ignores}
	}
	s.Start = func(p *testmcp.Process) { p.IgnoreSIGTERM() }
	s.AtEOF = func(p *testmcp.Process) {
		p.Note("end of input seen")
		p.Note("work finished")
		p.Exit(0)
	}
	return s
})

// In another session the worker is out of reach of signals to its launcher's group.
var launchers = map[string]string{
	"in a session of its own":     testmcp.OutOfGroup,
	"below shells":                testmcp.BelowShells,
	"by a launcher that goes":     `exec setsid -f "$0" "$@"`,
	"by one that ignores SIGTERM": `trap '' TERM; ` + testmcp.OutOfGroup,
}

// endings are the ways in which an upstream is given up.
var endings = map[string]func(t *testing.T, p *testmcp.Proxy, rec *testmcp.Recorder){
	"stop": func(t *testing.T, p *testmcp.Proxy, _ *testmcp.Recorder) { p.Stop() },
	"kill": func(t *testing.T, p *testmcp.Proxy, rec *testmcp.Recorder) {
		p.KillOnly()
		rec.WaitGone(t)
	},
}

func TestAWorkerOutOfReachEndsWithItsInput(t *testing.T) {
	for launcher, script := range launchers {
		for ending, end := range endings {
			t.Run(launcher+" "+ending, func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.EntryVia(script, "worker", []string{"legacy"})}))
				if launcher != "by a launcher that goes" {
					if a := p.Client(testmcp.Modern).CallTool("up__echo", `{"text":"x"}`); a.Text() != "x" {
						t.Fatalf("the worker gives %.300s", a.Raw)
					}
				}
				rec.Wait(t, testmcp.Is(testmcp.Start))
				end(t, p, rec)
				rec.WaitGone(t)
				if rec.Count(testmcp.Noted("work finished")) == 0 {
					t.Errorf("a worker had no time to finish:\n%s", rec.Dump(20))
				}
				for _, r := range rec.Find(testmcp.Is(testmcp.Exit)) {
					if !strings.HasPrefix(r.Text, "0") {
						t.Errorf("a worker ended with %q", r.Text)
					}
				}
			})
		}
	}
}

func TestAWorkerOutOfReachEndsWhenItsStartTakesTooLong(t *testing.T) {
	t.Parallel()
	rec := testmcp.NewRecorder(t)
	p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{
		"up": rec.EntryVia(testmcp.OutOfGroup, "worker", []string{"legacy", "mute"}, `"connect_timeout":"500ms"`, `"restart":{"initial_delay":"1m"}`),
	}))
	rec.Wait(t, testmcp.Noted("work finished"))
	rec.WaitGone(t)
	if st := stdio.UpstreamStatus(p, "up"); st.At("state").Str() != "failed" {
		t.Errorf("the status is %s", st)
	}
}
