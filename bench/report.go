package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// result is one measured cell. The first outcome is the one to compare with.
type result struct {
	cell     cell
	outcomes []outcome
}

// of returns the samples of s, none when it failed or was not measured.
func (r *result) of(s subject) []sample {
	for _, o := range r.outcomes {
		if o.subject == s && o.err == nil {
			return o.samples
		}
	}
	return nil
}

// median is the middle of values, or the mean of the two in the middle. It
// must not be called without values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func each(samples []sample, figure func(sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	return values
}

// ratio is the median of a's figure over b's, taken round by round: rounds lie
// side by side in time, so a slow minute of the machine cancels out. ok is
// false when either has no samples.
func ratio(a, b []sample, figure func(sample) float64) (value float64, ok bool) {
	n := min(len(a), len(b))
	if n == 0 {
		return 0, false
	}
	ratios := make([]float64, n)
	for i := range n {
		ratios[i] = figure(a[i]) / figure(b[i])
	}
	return median(ratios), true
}

// spread is how far the rounds lie apart, as a part of the median.
func spread(values []float64) float64 {
	return (slices.Max(values) - slices.Min(values)) / median(values)
}

// printTable writes one line for each subject of each cell, and the reasons of
// those without figures below.
func printTable(out io.Writer, results []result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "era\twhat\tclients\tthrough\tcalls/s\tratio\tCPU µs/call\tratio\tspread")
	for _, r := range results {
		base := r.of(subjectReverse)
		for _, o := range r.outcomes {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", r.cell.era, r.cell.what(), r.cell.clients, o.subject, figures(o, base))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, o := range r.outcomes {
			if o.err != nil {
				fmt.Fprintf(out, "failed: %s, %s: %s\n", r.cell, o.subject, strings.TrimSpace(o.err.Error()))
			}
		}
	}
	return nil
}

func figures(o outcome, base []sample) string {
	if o.err != nil {
		return "failed\t\t\t\t"
	}
	rates := each(o.samples, sample.rate)
	cpu, cpuRatio := "-", "-"
	if !slices.ContainsFunc(o.samples, func(s sample) bool { return s.cpu < 0 }) {
		cpu = fmt.Sprintf("%.1f", median(each(o.samples, sample.cpuPerCall)))
		cpuRatio = times(ratio(o.samples, base, sample.cpuPerCall))
	}
	return fmt.Sprintf("%.0f\t%s\t%s\t%s\t%.0f%%",
		median(rates), times(ratio(o.samples, base, sample.rate)), cpu, cpuRatio, 100*spread(rates))
}

func times(value float64, ok bool) string {
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", value)
}
