package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-proxy/mcp-proxy/bench/load"
)

// samplesAt has one sample a second long for each number of calls.
func samplesAt(calls ...int64) []sample {
	var samples []sample
	for _, n := range calls {
		samples = append(samples, sample{calls: n, wall: time.Second, cpu: 100 * time.Millisecond})
	}
	return samples
}

func TestMedian(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{[]float64{5}, 5},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 2, 9}, 3},
	}
	for _, test := range tests {
		if got := median(test.values); got != test.want {
			t.Errorf("of %v: %v", test.values, got)
		}
	}
}

func TestRatioGoesRoundByRound(t *testing.T) {
	// The machine became ten times slower; the ratio did not.
	got, ok := ratio(samplesAt(500, 50, 50), samplesAt(1000, 100, 100), sample.rate)
	if !ok || got != 0.5 {
		t.Errorf("got %v, %v", got, ok)
	}
	if _, ok := ratio(nil, samplesAt(1), sample.rate); ok {
		t.Error("a ratio of nothing")
	}
}

func TestSample(t *testing.T) {
	s := sample{calls: 500, wall: 2 * time.Second, cpu: 50 * time.Millisecond}
	if s.rate() != 250 || s.cpuPerCall() != 100 {
		t.Errorf("%v calls/s, %v µs", s.rate(), s.cpuPerCall())
	}
}

func calls(text, clients int) cell {
	return cell{era: load.Modern, method: "tools/call", text: text, clients: clients}
}

func TestVerdicts(t *testing.T) {
	list := cell{era: load.Modern, method: "tools/list", clients: 1}
	at := func(c cell, reverse, http, stdio int64) result {
		return result{c, []outcome{
			{subject: subjectReverse, samples: samplesAt(reverse)},
			{subject: subjectHTTP, samples: samplesAt(http)},
			{subject: subjectStdio, samples: samplesAt(stdio)},
		}}
	}
	broken := at(calls(100, 32), 100, 100, 100)
	broken.outcomes[1].err = errors.New("broken")
	tests := []struct {
		name string
		result
		want []bool
	}{
		{"small, at the floors", at(calls(100, 32), 100, 80, 80), []bool{true, true}},
		{"small, below", at(calls(100, 32), 100, 79, 78), []bool{false, false}},
		{"large, at the floors", at(calls(64<<10, 32), 100, 50, 50), []bool{true, true}},
		{"large, below", at(calls(64<<10, 32), 100, 49, 90), []bool{false, true}},
		{"one client has no floor", at(calls(100, 1), 100, 1, 1), nil},
		{"list, faster", at(list, 100, 101, 0), []bool{true}},
		{"list, as fast", at(list, 100, 100, 0), []bool{false}},
		{"without figures", broken, []bool{false, false}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := verdicts([]result{test.result})
			if len(got) != len(test.want) {
				t.Fatalf("%d verdicts, want %d", len(got), len(test.want))
			}
			all := true
			for i, v := range got {
				if v.pass() != test.want[i] {
					t.Errorf("%s: %v", v.what, v.pass())
				}
				all = all && test.want[i]
			}
			var out bytes.Buffer
			if printVerdicts(&out, got) != all || strings.Contains(out.String(), "FAIL") == all {
				t.Errorf("printed %s", &out)
			}
		})
	}
}

func TestPrintTable(t *testing.T) {
	unknown := samplesAt(400, 400)
	for i := range unknown {
		unknown[i].cpu = -1
	}
	results := []result{{calls(64<<10, 32), []outcome{
		{subject: subjectReverse, samples: samplesAt(1000, 1000)},
		{subject: subjectHTTP, samples: samplesAt(500, 500)},
		{subject: subjectStdio, err: errors.New("no such luck")},
		{subject: subjectDirect, samples: unknown},
	}}}
	var out bytes.Buffer
	if err := printTable(&out, results); err != nil {
		t.Fatal(err)
	}
	// Columns are as wide as their widest entry; that is not what matters here.
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"modern call, 64 KiB 32 ReverseProxy 1000 1.00 100.0 1.00 0%",
		"modern call, 64 KiB 32 mcp-proxy 500 0.50 200.0 2.00 0%",
		"mcp-proxy, stdio failed",
		"direct 400 0.40 - - 0%",
		"failed: modern call, 64 KiB, 32 clients, mcp-proxy, stdio: no such luck",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
