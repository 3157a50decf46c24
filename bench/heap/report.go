package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"diagnose/bench/load"
)

// report prints a table for each measure, and whether the agent meets its goals. An
// allocator that failed somewhere is an error, because then the comparison
// itself is in doubt; slow ones may, Electric Fence runs out of mappings.
func report(w io.Writer, allocators []allocator, results []*result) error {
	for _, m := range measures {
		fmt.Fprintf(w, "\n### %s\n\n", m.name)
		table(w, m, allocators, results)
	}
	goals(w, allocators, results)
	var failures []string
	for _, r := range results {
		for _, a := range allocators {
			if err := r.failed[a.name]; err != nil {
				failures = append(failures, fmt.Sprintf("%s under %s: %v", r.program, a.name, err))
			}
		}
	}
	if len(failures) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n### Failures\n\n")
	for _, f := range failures {
		fmt.Fprintf(w, "- %s\n", strings.ReplaceAll(f, "\n", " "))
	}
	for _, r := range results {
		if err := r.failed["agent"]; err != nil {
			return fmt.Errorf("%s failed under the agent: %w", r.program, err)
		}
	}
	return nil
}

func table(w io.Writer, m measure, allocators []allocator, results []*result) {
	head, line := fmt.Sprintf("| program | glibc %s |", m.unit), "| --- | ---: |"
	for _, a := range allocators[1:] {
		head += " " + a.name + " |"
		line += " ---: |"
	}
	fmt.Fprintln(w, head)
	fmt.Fprintln(w, line)
	for _, r := range results {
		fmt.Fprintf(w, "| %s | %.3g |", r.program, baseline(r, m)/m.scale)
		for _, a := range allocators[1:] {
			fmt.Fprintf(w, " %s |", cell(r, a, m))
		}
		fmt.Fprintln(w)
	}
	for _, own := range []bool{true, false} {
		if !slices.ContainsFunc(results, func(r *result) bool { return r.program.own == own }) {
			continue
		}
		fmt.Fprintf(w, "| **geometric mean, %s** | |", kind(own))
		for _, a := range allocators[1:] {
			text := "-"
			if mean, n := geometricMean(results, own, a, m); n > 0 {
				text = fmt.Sprintf("**%.2f**", mean)
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
}

func kind(own bool) string {
	if own {
		return "malloc-heavy"
	}
	return "real"
}

func baseline(r *result, m measure) float64 {
	var values []float64
	for _, s := range r.base {
		values = append(values, m.of(s))
	}
	if len(values) == 0 {
		return math.NaN()
	}
	median, _ := load.Summary(values)
	return median
}

func cell(r *result, a allocator, m measure) string {
	if r.failed[a.name] != nil {
		return "fails"
	}
	v, spread, ok := r.ratio(a.name, m)
	if !ok {
		return "-"
	}
	if len(r.pairs[a.name]) == 1 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2f ± %.2f", v, spread)
}

// geometricMean is over the programs that the allocator ran, which are n.
func geometricMean(results []*result, own bool, a allocator, m measure) (mean float64, n int) {
	sum := 0.0
	for _, r := range results {
		if v, _, ok := r.ratio(a.name, m); ok && r.program.own == own {
			sum += math.Log(v)
			n++
		}
	}
	return math.Exp(sum / float64(n)), n
}

const (
	goalMean   = 1.00    // of glibc's processor time, over all programs of a kind
	goalPeak   = 1.25    // of glibc's peak, to which comes
	quarantine = 1 << 20 // bytes a thread, the default of quarantine_mb
)

// goals writes how the agent compares with its goals.
func goals(w io.Writer, allocators []allocator, results []*result) {
	at := slices.IndexFunc(allocators, func(a allocator) bool { return a.name == "agent" })
	if at < 0 {
		return
	}
	agent := allocators[at]
	fmt.Fprintf(w, "\n### Goals\n\n| goal | programs | figure | |\n| --- | --- | ---: | --- |\n")
	for _, own := range []bool{true, false} {
		if mean, n := geometricMean(results, own, agent, cpu); n > 0 {
			fmt.Fprintf(w, "| geometric mean of CPU time at most %.2f of glibc's | %s | %.2f | %s |\n", goalMean, kind(own), mean, verdict(mean <= goalMean))
		}
		behind, n := slowerThanScudo(results, own)
		row(w, "ahead of scudo in CPU time on each", own, n, behind)
		large, n := overPeak(results, own)
		row(w, fmt.Sprintf("peak at most %.2f of glibc's and %d MiB a thread, on each", goalPeak, quarantine>>20), own, n, large)
	}
}

func row(w io.Writer, goal string, own bool, n int, misses []string) {
	if n == 0 {
		return
	}
	verdict := verdict(len(misses) == 0)
	if len(misses) > 0 {
		verdict += ": " + strings.Join(misses, ", ")
	}
	fmt.Fprintf(w, "| %s | %s | %d of %d | %s |\n", goal, kind(own), n-len(misses), n, verdict)
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

// slowerThanScudo compares the two within each round. Where a program hardly
// allocates they differ by chance alone; the spread tells.
func slowerThanScudo(results []*result, own bool) (misses []string, n int) {
	for _, r := range results {
		ratio, spread, ok := r.between("agent", "scudo", cpu)
		if r.program.own != own || !ok {
			continue
		}
		n++
		if ratio >= 1 {
			misses = append(misses, fmt.Sprintf("%s (%.2f ± %.2f of scudo's)", r.program, ratio, spread))
		}
	}
	return misses, n
}

// overPeak compares medians of bytes, because the budget is bytes.
func overPeak(results []*result, own bool) (misses []string, n int) {
	for _, r := range results {
		ratio, _, ok := r.ratio("agent", peak)
		if r.program.own != own || !ok {
			continue
		}
		n++
		limit := goalPeak + float64(r.program.threads*quarantine)/baseline(r, peak)
		if ratio > limit {
			misses = append(misses, fmt.Sprintf("%s (%.2f, allowed %.2f)", r.program, ratio, limit))
		}
	}
	return misses, n
}
