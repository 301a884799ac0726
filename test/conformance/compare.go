package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// difference is one scenario, or one check of it, that ends otherwise through the proxy than directly.
type difference struct {
	run      runKey
	scenario string
	check    string // empty where the scenario itself is missing or new
	fails    bool   // through the proxy it fails; otherwise it is only told in other words
	noWorse  bool   // it is told in other words, and nothing is lost
	what     string
}

func (d difference) String() string {
	name := d.scenario
	if d.check != "" {
		name += ":" + d.check
	}
	return fmt.Sprintf("%s: %s: %s", d.run, name, d.what)
}

// compare gives the differences of one run, in the order of the scenarios.
func compare(run runKey, direct, through results) []difference {
	var out []difference
	for _, name := range direct.scenarios() {
		if _, ok := through[name]; !ok {
			out = append(out, difference{run: run, scenario: name, fails: true, what: "did not run"})
			continue
		}
		out = append(out, compareScenario(run, name, direct[name], through[name])...)
	}
	for _, name := range through.scenarios() {
		if _, ok := direct[name]; !ok {
			out = append(out, difference{run: run, scenario: name, what: "ran through the proxy only"})
		}
	}
	return out
}

// compareScenario compares by check: all that one check said directly against all that it said through the proxy.
func compareScenario(run runKey, scenario string, direct, through []check) []difference {
	var out []difference
	want, got := byID(direct), byID(through)
	for _, id := range idsOf(direct, through) {
		if slices.Equal(statuses(want[id]), statuses(got[id])) {
			continue
		}
		out = append(out, difference{
			run: run, scenario: scenario, check: id, what: describe(want[id], got[id]),
			fails: slices.Contains(statuses(got[id]), statusFailure), noWorse: noWorse(want[id], got[id]),
		})
	}
	return out
}

// noWorse says whether a check that ends otherwise through the proxy loses nothing by it: no failure, no success less, and
// where there is one, no advice more that is not followed. A check that says nothing directly, since that run does not get
// so far, has nothing to lose but by a failure.
func noWorse(direct, through []check) bool {
	count := func(checks []check, status string) (n int) {
		for _, c := range checks {
			if c.Status == status {
				n++
			}
		}
		return n
	}
	passed := count(direct, statusSuccess)
	return count(through, statusFailure) == 0 && count(through, statusSuccess) >= passed &&
		(passed == 0 || count(through, statusWarning) <= count(direct, statusWarning))
}

// faults gives what did not succeed in a run that has nothing to be compared with.
func faults(run runKey, got results) []difference {
	var out []difference
	for _, name := range got.scenarios() {
		for _, c := range got[name] {
			if c.Status == statusFailure || c.Status == statusWarning {
				what := c.Status + ": " + cmp.Or(c.ErrorMessage, c.Description)
				out = append(out, difference{run: run, scenario: name, check: c.ID, fails: c.Status == statusFailure, what: what})
			}
		}
	}
	return out
}

func describe(want, got []check) string {
	text := fmt.Sprintf("directly %v, through the proxy %v", statuses(want), statuses(got))
	for _, c := range got {
		if c.ErrorMessage != "" {
			text += ": " + c.ErrorMessage
		}
	}
	return text
}

func byID(checks []check) map[string][]check {
	out := make(map[string][]check)
	for _, c := range checks {
		out[c.ID] = append(out[c.ID], c)
	}
	return out
}

func idsOf(lists ...[]check) []string {
	var ids []string
	for _, c := range slices.Concat(lists...) {
		if !slices.Contains(ids, c.ID) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func statuses(checks []check) []string {
	out := make([]string, 0, len(checks))
	for _, c := range checks {
		out = append(out, c.Status)
	}
	return out
}

// expectation is one entry of a list of expected failures. An empty Revision, Upstream, Client or Check stands for any,
// and a Scenario and a Check may have stars. Without Fails it allows other words, such as a remark that a check does not apply, and no
// failure.
type expectation struct {
	Revision string `yaml:"revision"`
	Upstream way    `yaml:"upstream"`
	Client   way    `yaml:"client"`
	Scenario string `yaml:"scenario"`
	Check    string `yaml:"check"`
	Fails    bool   `yaml:"fails"`
	// Sometimes says that it depends on which of several messages comes first, so that it need not happen.
	Sometimes bool   `yaml:"sometimes"`
	Reason    string `yaml:"reason"`
}

func (e expectation) matches(d difference) bool {
	return fits(e.Scenario, d.scenario) &&
		(e.Fails || !d.fails) &&
		(e.Check == "" || fits(e.Check, d.check)) &&
		(e.Revision == "" || e.Revision == d.run.revision) &&
		(e.Upstream == "" || e.Upstream == d.run.way) &&
		(e.Client == "" || e.Client == d.run.way)
}

// fits compares a name with a pattern. A bad pattern is found when the list is read.
func fits(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func (e expectation) String() string {
	parts := []string{e.Scenario}
	for _, p := range []string{e.Check, e.Revision, string(e.Upstream), string(e.Client)} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " ")
}

// readExpected reads the list of expected failures. Each entry needs a scenario and a reason.
func readExpected(file string) ([]expectation, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list struct {
		Failures []expectation `yaml:"failures"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, e := range list.Failures {
		if e.Scenario == "" || e.Reason == "" {
			return nil, fmt.Errorf("%s: entry %d needs a scenario and a reason", file, i+1)
		}
		for _, pattern := range []string{e.Scenario, e.Check} {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("%s: entry %d: %q: %w", file, i+1, pattern, err)
			}
		}
	}
	return list.Failures, nil
}

// apart takes out the differences by which nothing is lost.
func apart(diffs []difference) (worse, noWorse []difference) {
	for _, d := range diffs {
		if d.noWorse {
			noWorse = append(noWorse, d)
		} else {
			worse = append(worse, d)
		}
	}
	return worse, noWorse
}

// judge splits the differences into those that nobody expected and those that were, and finds the expectations that
// nothing met.
func judge(diffs []difference, expected []expectation) (surprises, known []difference, stale []expectation) {
	met := make([]bool, len(expected))
	for _, d := range diffs {
		i := slices.IndexFunc(expected, func(e expectation) bool { return e.matches(d) })
		if i < 0 {
			surprises = append(surprises, d)
			continue
		}
		known = append(known, d)
		// Every entry that matches has a use, not only the first.
		for j, e := range expected {
			met[j] = met[j] || e.matches(d)
		}
	}
	for i, e := range expected {
		if !met[i] && !e.Sometimes {
			stale = append(stale, e)
		}
	}
	return surprises, known, stale
}
