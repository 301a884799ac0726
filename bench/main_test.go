package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRunMeasuresEverything(t *testing.T) {
	code, out, _ := runBench(t, "-only", "100 B, 32|modern call, 64 KiB, 1 |modern list.* 1 client")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, s := range []subject{subjectReverse, subjectHTTP, subjectStdio} {
		// Three cells of calls and one of a list, which is not asked for over
		// stdio.
		want := 4
		if s == subjectStdio {
			want = 3
		}
		if got := strings.Count(out, "  "+string(s)+"  "); got != want {
			t.Errorf("%d lines for %s, want %d", got, s, want)
		}
	}
}

func TestRunControl(t *testing.T) {
	code, out, _ := runBench(t, "-control", "-only", "modern call, 100 B, 32")
	if code != 0 || !strings.Contains(out, string(subjectAgain)) || !strings.Contains(out, string(subjectDirect)) {
		t.Errorf("exit code %d", code)
	}
}

func TestRunChecksFloors(t *testing.T) {
	code, out, _ := runBench(t, "-check", "-only", "legacy call, 100 B, 32")
	failed := strings.Contains(out, "FAIL")
	if strings.Count(out, "PASS")+strings.Count(out, "FAIL") != 2 || (code != 0) != failed {
		t.Errorf("exit code %d", code)
	}
}

func TestRunFails(t *testing.T) {
	tests := []struct{ name, fault, reason string }{
		{"wrong answers", "wrong id", "wrong answer: the id is 2"},
		{"no start", "exit", "the configuration is wrong"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(faultEnv, test.fault)
			code, out, _ := runBench(t, "-only", "modern call, 100 B, 1 client")
			if code != 1 || !strings.Contains(out, test.reason) {
				t.Errorf("exit code %d, and the reason is not told", code)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	tests := map[string][]string{
		"unknown argument": {"fast"},
		"unknown flag":     {"-fast"},
		"round too short":  {"-round", "1ms"},
		"round too long":   {"-round", "1h"},
		"no rounds":        {"-rounds", "0"},
		"bad expression":   {"-only", "("},
		"check of nothing": {"-check", "-control"},
	}
	for name, args := range tests {
		var out, faults bytes.Buffer
		if code := run(args, &out, &faults); code != 2 || faults.Len() == 0 {
			t.Errorf("%s: exit code %d, %q", name, code, &faults)
		}
	}
	var out, faults bytes.Buffer
	if code := run([]string{"-h"}, &out, &faults); code != 0 || !strings.Contains(faults.String(), "-quick") {
		t.Errorf("-h: exit code %d, %q", code, &faults)
	}
	if code := run([]string{"-only", "no such cell"}, &out, &faults); code != 1 {
		t.Errorf("no cell: exit code %d", code)
	}
}

func TestPlan(t *testing.T) {
	full, err := parseOptions(nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	quick, err := parseOptions([]string{"-quick"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(full)
	names := map[string]bool{}
	for _, c := range p.cells {
		names[c.String()] = true
	}
	if len(p.cells) != 12 || len(names) != 12 {
		t.Errorf("%d cells, %d names: %v", len(p.cells), len(names), names)
	}
	if got := newPlan(quick); len(got.cells) != 6 || got.round >= p.round {
		t.Errorf("quick: %d cells, rounds of %v", len(got.cells), got.round)
	}
}
