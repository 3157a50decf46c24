package main

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/bench/load"
)

// measure is one of the costs that are compared.
type measure struct {
	name, unit string
	scale      float64 // of the unit
	of         func(sample) float64
}

var measures = []measure{
	{"CPU time", "s", 1, func(s sample) float64 { return s.cpu }},
	{"wall time", "s", 1, func(s sample) float64 { return s.wall }},
	{"peak resident memory", "MiB", 1 << 20, func(s sample) float64 { return s.peak }},
}

var cpu, peak = measures[0], measures[2]

// pair is one round: an allocator's run and glibc's on the same work.
type pair struct{ it, glibc sample }

// result is one program under all allocators.
type result struct {
	program program
	base    []sample          // glibc's runs of the whole work
	pairs   map[string][]pair // by allocator
	failed  map[string]error
}

// compare runs the allocators in turn. Those that are too slow for the whole work get a share of
// it, fewer rounds, and runs of glibc on the same share.
func compare(l *launcher, p program, allocators []allocator, runs int) (*result, error) {
	r := &result{program: p, pairs: map[string][]pair{}, failed: map[string]error{}}
	shares := map[int][]allocator{100: nil}
	order := []int{100}
	for _, a := range allocators {
		if a.name == glibc || a.ownOnly() && !p.own {
			continue
		}
		if _, ok := shares[a.share]; !ok {
			order = append(order, a.share)
		}
		shares[a.share] = append(shares[a.share], a)
	}
	for _, share := range order {
		rounds := runs
		if share < 100 {
			rounds = (runs + 2) / 3
		}
		if err := r.rounds(l, shares[share], allocators[0], share, rounds); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// rounds runs each allocator once a round on the same share of the work, glibc
// in turn with them, after a run that is not counted.
func (r *result) rounds(l *launcher, group []allocator, base allocator, share, rounds int) error {
	expected, err := r.measure(l, base, share)
	if err != nil {
		return fmt.Errorf("under glibc: %w", err)
	}
	turn := append([]allocator{base}, group...)
	for range rounds {
		round := map[string]sample{}
		for _, a := range turn {
			if r.failed[a.name] != nil {
				continue
			}
			s, err := r.measure(l, a, share)
			if err == nil && s.output != expected.output {
				err = fmt.Errorf("its output differs")
			}
			if err != nil && a.name == glibc {
				return fmt.Errorf("under glibc: %w", err)
			}
			if err != nil {
				r.failed[a.name] = err
				continue
			}
			round[a.name] = s
		}
		if share == 100 {
			r.base = append(r.base, round[glibc])
		}
		for _, a := range group {
			if s, ok := round[a.name]; ok {
				r.pairs[a.name] = append(r.pairs[a.name], pair{s, round[glibc]})
			}
		}
		// Another one goes first, so that no one always follows the same.
		turn = append(turn[1:], turn[0])
	}
	return nil
}

func (r *result) measure(l *launcher, a allocator, share int) (sample, error) {
	j, err := r.program.job(a, share)
	if err != nil {
		return sample{}, err
	}
	return l.launch(j, a)
}

// ratio is the median of the ratios to glibc within a round, and half the
// distance of their quartiles. ok is false if the allocator failed or had no
// part in it.
func (r *result) ratio(allocator string, m measure) (median, spread float64, ok bool) {
	if r.failed[allocator] != nil || len(r.pairs[allocator]) == 0 {
		return 0, 0, false
	}
	var ratios []float64
	for _, p := range r.pairs[allocator] {
		ratios = append(ratios, m.of(p.it)/m.of(p.glibc))
	}
	median, spread = load.Summary(ratios)
	return median, spread, true
}

// between is like ratio with another allocator in glibc's place.
func (r *result) between(allocator, other string, m measure) (median, spread float64, ok bool) {
	ours, theirs := r.pairs[allocator], r.pairs[other]
	if r.failed[allocator] != nil || r.failed[other] != nil || len(ours) == 0 || len(ours) != len(theirs) {
		return 0, 0, false
	}
	var ratios []float64
	for round := range ours {
		ratios = append(ratios, m.of(ours[round].it)/m.of(theirs[round].it))
	}
	median, spread = load.Summary(ratios)
	return median, spread, true
}

// progress is one line for a user that waits.
func (r *result) progress() string {
	var names []string
	for name := range r.pairs {
		names = append(names, name)
	}
	slices.Sort(names)
	line := fmt.Sprintf("%-14s CPU", r.program)
	for _, name := range names {
		if v, _, ok := r.ratio(name, cpu); ok {
			line += fmt.Sprintf(" %s %.2f", name, v)
		}
	}
	line += ", peak"
	for _, name := range names {
		if v, _, ok := r.ratio(name, peak); ok {
			line += fmt.Sprintf(" %s %.2f", name, v)
		}
	}
	for name, err := range r.failed {
		line += fmt.Sprintf("\n    %s failed: %s", name, strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	return line
}
