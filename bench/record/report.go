package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"diagnose/bench/load"
)

func wall(s sample) float64      { return s.wall }
func cpu(s sample) float64       { return s.cpu }
func ofProgram(s sample) float64 { return s.program }

// column is one of the table's.
type column struct {
	head string
	cell func(r *result) string
}

var columns = []column{
	{"program", func(r *result) string { return r.program.name }},
	{"native ms", func(r *result) string { return native(r, wall) }},
	{"native CPU ms", func(r *result) string { return native(r, cpu) }},
	{"recorded wall", func(r *result) string { return cell(r, recorded, wall) }},
	{"recorded CPU", func(r *result) string { return cell(r, recorded, cpu) }},
	{"its own CPU", func(r *result) string { return cell(r, recorded, ofProgram) }},
	{"heap alone, wall", func(r *result) string { return cell(r, heap, wall) }},
	{"tsan wall", func(r *result) string { return cell(r, tsan, wall) }},
	{"helgrind wall", func(r *result) string { return cell(r, helgrind, wall) }},
	{"events", func(r *result) string { return fmt.Sprint(r.log.events) }},
	{"log MB/s", func(r *result) string { return fmt.Sprintf("%.2f", float64(r.log.bytes)/1e6/r.log.seconds) }},
	{"replay", func(r *result) string { return cell(r, replayed, wall) }},
}

// report prints the table, and whether it meets the goals.
func report(w io.Writer, results []*result) {
	head, line := "|", "|"
	for i, c := range columns {
		head += " " + c.head + " |"
		if i == 0 {
			line += " --- |"
		} else {
			line += " ---: |"
		}
	}
	fmt.Fprintf(w, "\n%s\n%s\n", head, line)
	for _, r := range results {
		row := "|"
		for _, c := range columns {
			row += " " + c.cell(r) + " |"
		}
		fmt.Fprintln(w, row)
	}
	goals(w, results)
	failures(w, results)
}

// native is the median in milliseconds; a server's is that of 1,000 requests.
func native(r *result, of func(sample) float64) string {
	var values []float64
	unit, scale := "", 1e3
	for _, s := range r.native {
		if s.requests > 1 {
			unit, scale = " /1000", 1e6
		}
		values = append(values, of(s))
	}
	median, _ := load.Summary(values)
	return fmt.Sprintf("%.3g%s", median*scale, unit)
}

func cell(r *result, way string, of func(sample) float64) string {
	if r.failed[way] != nil {
		return "fails"
	}
	v, spread, ok := r.ratio(way, of)
	switch {
	case !ok || math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case len(r.pairs[way]) == 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2f ± %.2f", v, spread)
}

// geometricMean is over the real programs that have the ratio, which are n.
func geometricMean(results []*result, way string, of func(sample) float64) (mean float64, n int) {
	sum := 0.0
	for _, r := range results {
		if v, _, ok := r.ratio(way, of); ok && v > 0 && !r.program.own {
			sum += math.Log(v)
			n++
		}
	}
	return math.Exp(sum / float64(n)), n
}

const (
	goalReal   = 1.03 // of wall time, the geometric mean over the real programs
	goalReplay = 1.5  // of the program's wall time on one processor
)

func goals(w io.Writer, results []*result) {
	fmt.Fprintf(w, "\n| goal | figure | |\n| --- | --- | --- |\n")
	for _, of := range []struct {
		name string
		of   func(sample) float64
	}{{"wall time", wall}, {"CPU time of all, the tracer's too", cpu}, {"CPU time of the program", ofProgram}} {
		if mean, n := geometricMean(results, recorded, of.of); n > 0 {
			fmt.Fprintf(w, "| real programs recorded, geometric mean of %d, %s: at most %.2f | %.3f | %s |\n", n, of.name, goalReal, mean,
				verdict(mean, goalReal))
		}
	}
	for _, r := range results {
		if v, spread, ok := r.ratio(recorded, wall); ok && r.program.goal > 0 {
			fmt.Fprintf(w, "| %s: at most %.1f | %.2f ± %.2f | %s |\n", r.program.name, r.program.goal, v, spread, verdict(v, r.program.goal))
		}
	}
	slow, n := []string{}, 0
	for _, r := range results {
		v, _, ok := r.ratio(replayed, wall)
		if r.program.replayed == 0 {
			continue
		}
		n++
		if !ok {
			slow = append(slow, r.program.name+" (fails)")
		} else if v > goalReplay {
			slow = append(slow, fmt.Sprintf("%s (%.2f)", r.program.name, v))
		}
	}
	if n > 0 {
		text := "met"
		if len(slow) > 0 {
			text = "**missed**: " + strings.Join(slow, ", ")
		}
		fmt.Fprintf(w, "| replay: at most %.1f | %d of %d | %s |\n", goalReplay, n-len(slow), n, text)
	}
}

func verdict(figure, goal float64) string {
	if figure <= goal {
		return "met"
	}
	return fmt.Sprintf("**missed** by %.0f %%", (figure/goal-1)*100)
}

func failures(w io.Writer, results []*result) {
	first := true
	for _, r := range results {
		for _, way := range []string{recorded, heap, tsan, helgrind, replayed} {
			err := r.failed[way]
			if err == nil {
				continue
			}
			if first {
				fmt.Fprintf(w, "\nFailures:\n\n")
				first = false
			}
			why := ""
			if way == replayed && r.program.never != "" {
				why = " (" + r.program.never + ")"
			}
			fmt.Fprintf(w, "- %s, %s%s: %s\n", r.program.name, way, why, strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}
