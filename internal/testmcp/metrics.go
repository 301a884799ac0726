package testmcp

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Sample is one line of the metrics page.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Metrics is a metrics page.
type Metrics []Sample

// Metrics reads /metrics.
func (p *Proxy) Metrics() Metrics {
	p.t.Helper()
	status, body := p.Get("/metrics")
	if status != 200 {
		p.t.Fatalf("/metrics: %d %s", status, clip(body, 300))
	}
	return ParseMetrics(p.t, body)
}

// ParseMetrics reads the text exposition format and fails the test on a line that it cannot read.
func ParseMetrics(t testing.TB, text string) Metrics {
	t.Helper()
	var out Metrics
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s, ok := parseSample(line)
		if !ok {
			t.Fatalf("unreadable metrics line: %s", line)
		}
		out = append(out, s)
	}
	return out
}

func parseSample(line string) (Sample, bool) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return Sample{}, false
	}
	s := Sample{Name: line[:end], Labels: map[string]string{}}
	rest := line[end:]
	if rest[0] == '{' {
		var ok bool
		if rest, ok = s.parseLabels(rest[1:]); !ok {
			return s, false
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return s, false
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	s.Value = v
	return s, err == nil
}

// parseLabels reads to the closing brace and gives what follows it.
func (s *Sample) parseLabels(text string) (rest string, ok bool) {
	for {
		text = strings.TrimLeft(text, ", ")
		if after, done := strings.CutPrefix(text, "}"); done {
			return after, true
		}
		name, value, found := strings.Cut(text, "=")
		if !found {
			return "", false
		}
		quoted, err := strconv.QuotedPrefix(value)
		if err != nil {
			return "", false
		}
		s.Labels[name], err = strconv.Unquote(quoted)
		if err != nil {
			return "", false
		}
		text = value[len(quoted):]
	}
}

// Sum adds up the samples of this name whose labels include these, given as name, value, name, value.
func (m Metrics) Sum(name string, labels ...string) float64 {
	sum := 0.0
	for _, s := range m.Find(name, labels...) {
		sum += s.Value
	}
	return sum
}

// Find gives the samples of this name whose labels include these.
func (m Metrics) Find(name string, labels ...string) []Sample {
	if len(labels)%2 != 0 {
		panic("testmcp: labels come in pairs")
	}
	var out []Sample
	for _, s := range m {
		if s.Name == name && s.has(labels) {
			out = append(out, s)
		}
	}
	return out
}

func (s Sample) has(labels []string) bool {
	for pair := range slices.Chunk(labels, 2) {
		if s.Labels[pair[0]] != pair[1] {
			return false
		}
	}
	return true
}

// Names gives the names of all samples, sorted, each once.
func (m Metrics) Names() []string {
	set := map[string]bool{}
	for _, s := range m {
		set[s.Name] = true
	}
	return slices.Sorted(maps.Keys(set))
}
