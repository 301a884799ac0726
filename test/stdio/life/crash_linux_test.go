package life

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/mcp-proxy/mcp-proxy/internal/testmcp"
	"github.com/mcp-proxy/mcp-proxy/test/stdio"
)

// survivor heeds neither the end of its stdin nor SIGTERM.
var _ = testmcp.Register("survivor", func(args []string) *testmcp.Server {
	s := testmcp.Basic("survivor")
	s.Era = stdio.Era(args)
	s.Start = func(p *testmcp.Process) { p.IgnoreSIGTERM() }
	s.AtEOF = func(p *testmcp.Process) { p.Hang() }
	return s
})

// recorded gives the files of the children that a program has recorded, by pid.
func recorded(t *testing.T, p *testmcp.Proxy) map[int]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.State(), "children", "*"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]string{}
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(f))
		if err != nil {
			t.Fatal(err)
		}
		out[pid] = f
	}
	return out
}

// alive gives those of the processes that live.
func alive(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !testmcp.Alive(pid) })
}

func TestAfterACrashTheNextStartEndsTheOldChildren(t *testing.T) {
	for name, entry := range map[string]func(*testmcp.Recorder) string{
		"direct": func(r *testmcp.Recorder) string { return r.Entry("survivor", []string{"legacy"}) },
		"below shells": func(r *testmcp.Recorder) string {
			return r.EntryVia(testmcp.BelowShells, "survivor", []string{"legacy"})
		},
	} {
		for _, headless := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " without its first process"}[headless], func(t *testing.T) {
				t.Parallel()
				rec := testmcp.NewRecorder(t)
				p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": entry(rec)}))
				rec.Wait(t, testmcp.Is(testmcp.Start))
				first := recorded(t, p)
				if len(first) != 1 {
					t.Fatalf("recorded are %v", first)
				}
				old := p.KillOnly()
				for pid := range first {
					if headless {
						check(t, syscall.Kill(pid, syscall.SIGKILL))
					}
				}
				if name == "direct" && headless {
					rec.WaitGone(t)
				} else if len(alive(old)) == 0 {
					t.Fatal("nothing has outlived the program; the test shows nothing")
				}
				p.Again()
				if left := alive(old); len(left) > 0 {
					t.Errorf("%v of %v live on after the next start", left, old)
				}
				for pid := range first {
					if _, again := recorded(t, p)[pid]; again {
						t.Errorf("%d is still recorded", pid)
					}
				}
				if a := p.Client(testmcp.Legacy).CallTool("up__echo", `{"text":"x"}`); a.Text() != "x" {
					t.Errorf("the new one gives %.300s", a.Raw)
				}
				p.Stop()
				if left := recorded(t, p); len(left) > 0 {
					t.Errorf("after an orderly end %v are recorded", left)
				}
			})
		}
	}
}

// The number of a process says little: systems give it to others.
func TestAProcessThatIsNotTheRecordedOneIsLeftAlone(t *testing.T) {
	for name, change := range map[string]func(map[string]any){
		"another start": func(r map[string]any) { r["started"] = r["started"].(float64) + 1 },
		"another boot":  func(r map[string]any) { r["boot"] = "00000000-0000-4000-8000-000000000000" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := testmcp.NewRecorder(t)
			p := testmcp.StartProxy(t, testmcp.Config("", map[string]string{"up": rec.Entry("survivor", []string{"legacy"})}))
			files := recorded(t, p)
			old := p.KillOnly()
			for _, f := range files {
				b, err := os.ReadFile(f)
				check(t, err)
				var r map[string]any
				check(t, json.Unmarshal(b, &r))
				change(r)
				b, err = json.Marshal(r)
				check(t, err)
				check(t, os.WriteFile(f, b, 0o600))
			}
			p.Again()
			if len(old) == 0 || len(alive(old)) != len(old) {
				t.Errorf("of %v only %v live", old, alive(old))
			}
			for _, pid := range old {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			for pid := range files {
				if _, still := recorded(t, p)[pid]; still {
					t.Errorf("the record of %d is kept for ever", pid)
				}
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
