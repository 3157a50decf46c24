package page

import (
	"cmp"
	"slices"

	"diagnose/corpus"
)

// mostChoices bounds the values of a facet that are shown, the most frequent ones.
const mostChoices = 12

// facet is the different values that the selected failures have of one property.
type facet struct {
	Title   string
	Choices []choice
	// All is the address without this choice, "" if nothing is chosen.
	All string
	// More counts the values that are not shown.
	More int
}

// choice is a value with its number of failures.
type choice struct {
	Name, Href string
	Count      int
	Chosen     bool
}

// facetsOf counts programs, versions and hosts of the selected failures.
func facetsOf(path string, s selection, list []*corpus.Entry) []facet {
	var facets []facet
	for _, x := range []struct {
		title, parameter, chosen string
		of                       func(*corpus.Entry) string
	}{
		{"Program", programParameter, s.Program, (*corpus.Entry).Name},
		{"Version", versionParameter, s.Version, versionOf},
		{"Host", hostParameter, s.Host, func(e *corpus.Entry) string { return e.Labels[hostLabel] }},
	} {
		counts := map[string]int{}
		for _, e := range list {
			if v := x.of(e); v != "" {
				counts[v]++
			}
		}
		f := facet{Title: x.title}
		for v, n := range counts {
			f.Choices = append(f.Choices, choice{Name: v, Count: n, Href: s.with(x.parameter, v).address(path), Chosen: v == x.chosen})
		}
		if x.chosen != "" {
			f.All = s.with(x.parameter, "").address(path)
		}
		slices.SortFunc(f.Choices, func(a, b choice) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
		if len(f.Choices) > mostChoices {
			f.More, f.Choices = len(f.Choices)-mostChoices, f.Choices[:mostChoices]
		}
		if len(f.Choices) > 0 || f.All != "" {
			facets = append(facets, f)
		}
	}
	return facets
}
