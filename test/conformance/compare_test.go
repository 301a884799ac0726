package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var aRun = runKey{straight, "2025-11-25", overStdio}

var aClient = runKey{asClient, "2025-11-25", modernClient}

func ok(id string) check  { return check{ID: id, Status: statusSuccess} }
func bad(id string) check { return check{ID: id, Status: statusFailure, ErrorMessage: "no answer"} }

func TestCompare(t *testing.T) {
	direct := results{"ping": {ok("ping"), ok("wire")}, "list": {ok("names"), ok("names")}}
	tests := []struct {
		name    string
		through results
		want    []string
	}{
		{"the same", results{"ping": {ok("ping"), ok("wire")}, "list": {ok("names"), ok("names")}}, nil},
		{
			"another order of different checks",
			results{"ping": {ok("wire"), ok("ping")}, "list": {ok("names"), ok("names")}}, nil,
		},
		{
			"a failure",
			results{"ping": {bad("ping"), ok("wire")}, "list": {ok("names"), ok("names")}},
			[]string{"2025-11-25 over stdio: ping:ping: directly [SUCCESS], through the proxy [FAILURE]: no answer"},
		},
		{
			"a check less",
			results{"ping": {ok("ping"), ok("wire")}, "list": {ok("names")}},
			[]string{"2025-11-25 over stdio: list:names: directly [SUCCESS SUCCESS], through the proxy [SUCCESS]"},
		},
		{
			"a scenario less and one more",
			results{"ping": {ok("ping"), ok("wire")}, "new": {ok("x")}},
			[]string{
				"2025-11-25 over stdio: list: did not run",
				"2025-11-25 over stdio: new: ran through the proxy only",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range compare(aRun, direct, tt.through) {
				got = append(got, d.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("compare = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatLosesNothing(t *testing.T) {
	const success, warning, failure = statusSuccess, statusWarning, statusFailure
	checks := func(of ...string) (out []check) {
		for _, status := range of {
			out = append(out, check{ID: "x", Status: status})
		}
		return out
	}
	for _, tt := range []struct {
		direct, through []check
		want            bool
	}{
		{checks(warning), checks(success), true},
		{checks(warning), checks("INFO"), true},
		{checks("INFO"), checks("INFO", "INFO"), true},
		{nil, checks(warning), true},
		{nil, checks(failure), false},
		{checks(success), checks("INFO"), false},
		{checks(success), nil, false},
		{checks(success), checks(success, warning), false},
		{checks(success), checks(success, failure), false},
		{checks("INFO"), checks(warning), true},
		{checks("INFO"), checks(failure), false},
	} {
		if got := noWorse(tt.direct, tt.through); got != tt.want {
			t.Errorf("directly %v, through the proxy %v: %v", statuses(tt.direct), statuses(tt.through), got)
		}
	}
	worse, noWorse := apart([]difference{{check: "a"}, {check: "b", noWorse: true}})
	if len(worse) != 1 || worse[0].check != "a" || len(noWorse) != 1 || noWorse[0].check != "b" {
		t.Errorf("apart = %v, %v", worse, noWorse)
	}
}

func TestJudge(t *testing.T) {
	diffs := []difference{
		{run: aRun, scenario: "ping", check: "wire", what: "differs"},
		{run: runKey{straight, "2026-07-28", overHTTP}, scenario: "ping", check: "wire", what: "differs"},
		{run: aRun, scenario: "list", check: "names", fails: true, what: "fails"},
		{run: aRun, scenario: "call", check: "text", fails: true, what: "fails"},
	}
	expected := []expectation{
		{Scenario: "ping", Revision: "2025-11-25", Reason: "r"},
		{Scenario: "ping", Upstream: overStdio, Check: "w*e", Reason: "r"},
		{Scenario: "ping", Check: "other", Reason: "r"},
		{Scenario: "list", Reason: "r"},
		{Scenario: "c*l", Fails: true, Reason: "r"},
		{Scenario: "other", Sometimes: true, Reason: "r"},
	}
	surprises, known, stale := judge(diffs, expected)
	if !slices.Equal(surprises, diffs[1:3]) {
		t.Errorf("surprises = %v, want %v", surprises, diffs[1:3])
	}
	if want := []difference{diffs[0], diffs[3]}; !slices.Equal(known, want) {
		t.Errorf("known = %v, want %v", known, want)
	}
	if want := expected[2:4]; !slices.Equal(stale, want) {
		t.Errorf("stale = %v, want %v", stale, want)
	}
}

func TestReadExpected(t *testing.T) {
	tests := []struct {
		name, text, mistake string
		want                []expectation
	}{
		{name: "none", text: "failures: []\n"},
		{name: "only comments", text: "# nothing\n"},
		{
			name: "an entry",
			text: "failures:\n  - scenario: ping\n    revision: 2025-11-25\n    upstream: stdio\n    reason: because\n",
			want: []expectation{{Scenario: "ping", Revision: "2025-11-25", Upstream: overStdio, Reason: "because"}},
		},
		{name: "no reason", text: "failures:\n  - scenario: ping\n", mistake: "needs a scenario and a reason"},
		{name: "a bad pattern", text: "failures:\n  - scenario: \"p[\"\n    reason: because\n", mistake: "syntax error"},
		{name: "unknown key", text: "failures:\n  - scenaro: ping\n", mistake: "scenaro"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "expected.yml")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readExpected(path)
			if tt.mistake != "" {
				if err == nil || !strings.Contains(err.Error(), tt.mistake) {
					t.Errorf("readExpected = %v, want an error with %q", err, tt.mistake)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("readExpected = %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

// wholeReport is a report in which the proxy changes nothing.
func wholeReport() report {
	rep := report{direct: make(map[string]results), through: make(map[runKey]results)}
	for _, rev := range revisions {
		rep.direct[rev.name] = results{"all": slices.Repeat([]check{ok("x")}, rev.checks)}
	}
	for _, key := range runs() {
		rep.through[key] = rep.direct[key.revision]
		if key.kind == asClient {
			rep.through[key] = make(results)
			for i := range revisionOf(key.revision).clientScenarios {
				rep.through[key][strconv.Itoa(i)] = []check{ok("x")}
			}
		}
	}
	return rep
}

func TestConclude(t *testing.T) {
	tests := []struct {
		name     string
		change   func(*report)
		expected []expectation
		ok       bool
		differs  bool
	}{
		{name: "equal", change: func(*report) {}, ok: true},
		{
			name:   "the reference server fails",
			change: func(r *report) { r.direct["2025-03-26"] = results{"all": {ok("x"), ok("x"), bad("x")}} },
		},
		{
			name:   "the suite runs half",
			change: func(r *report) { r.direct["2025-03-26"] = results{"all": {ok("x")}} },
		},
		{name: "a run is missing", change: func(r *report) { delete(r.through, aRun) }, differs: true},
		{
			name:     "an expectation that nothing meets",
			change:   func(*report) {},
			expected: []expectation{{Scenario: "all", Reason: "r"}}, differs: true,
		},
		{
			name:   "a client that fails",
			change: func(r *report) { r.through[aClient]["0"] = []check{bad("x")} }, differs: true,
		},
		{
			name:   "a client that is warned",
			change: func(r *report) { r.through[aClient]["0"] = []check{{ID: "x", Status: statusWarning}} }, differs: true,
		},
		{
			name:   "clients that run half",
			change: func(r *report) { delete(r.through[aClient], "0") },
		},
		{
			name:     "a difference that is expected",
			change:   func(r *report) { r.through[aRun] = results{"all": {ok("x")}} },
			expected: []expectation{{Scenario: "all", Revision: aRun.revision, Reason: "r"}}, ok: true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rep := wholeReport()
			tt.change(&rep)
			var out bytes.Buffer
			err := conclude(&out, options{}, rep, map[kind][]expectation{straight: tt.expected})
			if (err == nil) != tt.ok || errors.Is(err, errDiffers) != tt.differs {
				t.Errorf("conclude = %v, want good = %v, differs = %v\n%s", err, tt.ok, tt.differs, out.String())
			}
		})
	}
}

func TestReadResults(t *testing.T) {
	dir := t.TempDir()
	server := filepath.Join(dir, "server-tools-list-2026-11-30T15-19-18-394Z")
	client := filepath.Join(dir, "auth", "basic-cimd-2026-11-30T15-19-18-394Z")
	for _, d := range []string{server, client} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := readResults(dir); err == nil {
		t.Error("a scenario without checks.json is no error")
	}
	for d, text := range map[string]string{
		server: `[{"id":"a","status":"SUCCESS"},{"id":"b","status":"FAILURE","errorMessage":"m"},{"id":"c","status":"INFO"}]`,
		client: `[]`,
	} {
		if err := os.WriteFile(filepath.Join(d, "checks.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readResults(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"auth/basic-cimd", "tools-list"}; !slices.Equal(got.scenarios(), want) {
		t.Errorf("scenarios = %q, want %q", got.scenarios(), want)
	}
	if passed, failed := got.totals(); passed != 1 || failed != 1 {
		t.Errorf("%d passed and %d failed, want one of each", passed, failed)
	}
}

func TestTheEraOfTheReferenceServer(t *testing.T) {
	r := &rig{server: "server"}
	for _, tt := range []struct {
		key  runKey
		want string // the forced protocol and the sharing
	}{
		{runKey{straight, "2025-11-25", overHTTP}, ""},
		{runKey{straight, "2026-07-28", overHTTP}, ""},
		{runKey{straight, "2025-06-18", overStdio}, "legacy"},
		{runKey{straight, "2026-07-28", overStdio}, "modern"},
		{runKey{crossed, "2025-11-25", overHTTP}, "modern"},
		{runKey{crossed, "2025-11-25", overStdio}, "modern"},
		{runKey{crossed, "2026-07-28", overHTTP}, "legacy session"},
		{runKey{crossed, "2026-07-28", overStdio}, "legacy session"},
	} {
		server := r.reference(tt.key, "http://server")
		got := []string{}
		for _, k := range []string{"protocol", "sharing"} {
			if v, ok := server[k].(string); ok {
				got = append(got, v)
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.key, s, tt.want)
		}
	}
}
