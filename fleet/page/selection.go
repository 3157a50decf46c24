package page

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"diagnose/corpus"
)

// The parameters of a request that select failures.
const (
	programParameter = "program"
	versionParameter = "version"
	hostParameter    = "host"
	labelParameter   = "label"
	fromParameter    = "from"
	toParameter      = "to"
	pageParameter    = "page"
	// The next ones select and order causes.
	stateParameter = "state"
	sinceParameter = "since"
	sortParameter  = "sort"
	// nameParameter is the name of a test, queryParameter what a search looks for.
	nameParameter  = "name"
	queryParameter = "q"
)

// byCount is the value of sortParameter that puts the most frequent causes first.
const byCount = "count"

// longestParameter bounds a parameter's value in bytes, mostLabels the labels of a selection.
const (
	longestParameter = 4096
	mostLabels       = 16
)

// selection is the failures that a request asks for. Fields that are not set select all.
type selection struct {
	// Program is the base name of the executable, Version that of versionOf, Host the label host.
	Program, Version, Host string
	// Labels have the form key=value.
	Labels []string
	// From and To are the first and the last day, midnight in the server's time zone.
	From, To time.Time
	// Page counts from 1.
	Page int
	// State is the standing of the causes in the period that Since names; "" are all.
	State standing
	Since string
	// Name is the test of a test's page, Query the text of a search. Both select by themselves.
	Name, Query string
	// ByCount puts the most frequent causes first, and not the most severe ones.
	ByCount bool
}

// parseSelection reads the parameters. Others are ignored.
func parseSelection(q url.Values) (selection, error) {
	s := selection{Program: q.Get(programParameter), Version: q.Get(versionParameter), Host: q.Get(hostParameter), Labels: q[labelParameter], Page: 1,
		Name: q.Get(nameParameter), Query: q.Get(queryParameter)}
	for _, text := range append([]string{s.Program, s.Version, s.Host, s.Name, s.Query}, s.Labels...) {
		if len(text) > longestParameter || !utf8.ValidString(text) {
			return s, errors.New("a parameter is too long, or no text")
		}
	}
	if len(s.Labels) > mostLabels {
		return s, fmt.Errorf("more than %d labels", mostLabels)
	}
	for _, l := range s.Labels {
		if _, _, err := corpus.ParseLabel(l); err != nil {
			return s, err
		}
	}
	for name, day := range map[string]*time.Time{fromParameter: &s.From, toParameter: &s.To} {
		if q.Get(name) == "" {
			continue
		}
		var err error
		if *day, err = time.ParseInLocation(time.DateOnly, q.Get(name), time.Local); err != nil || day.Year() < 1970 || day.Year() > 9998 {
			return s, fmt.Errorf("%s takes a day, as in 2026-03-01", name)
		}
	}
	if !s.From.IsZero() && !s.To.IsZero() && s.To.Before(s.From) {
		s.From, s.To = s.To, s.From // a brush that was drawn from right to left
	}
	s.State, s.Since, s.ByCount = standing(q.Get(stateParameter)), q.Get(sinceParameter), q.Get(sortParameter) == byCount
	if s.State != "" && !slices.Contains([]standing{standsNew, standsBack, standsKnown, standsFixed, standsQuiet}, s.State) {
		return s, fmt.Errorf("%s takes the name of a standing", stateParameter)
	}
	s.Since = periodNamed(s.Since).name
	if text := q.Get(pageParameter); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostEntries {
			return s, fmt.Errorf("%s takes a number from 1 on", pageParameter)
		}
		s.Page = n
	}
	return s, nil
}

// values are the parameters that parseSelection reads.
func (s selection) values() url.Values {
	q := url.Values{}
	for name, text := range map[string]string{programParameter: s.Program, versionParameter: s.Version, hostParameter: s.Host, stateParameter: string(s.State),
		nameParameter: s.Name, queryParameter: s.Query} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if len(s.Labels) > 0 {
		q[labelParameter] = s.Labels
	}
	for name, day := range map[string]time.Time{fromParameter: s.From, toParameter: s.To} {
		if !day.IsZero() {
			q.Set(name, day.Format(time.DateOnly))
		}
	}
	if s.State != "" && s.Since != "" {
		q.Set(sinceParameter, s.Since)
	}
	if s.ByCount {
		q.Set(sortParameter, byCount)
	}
	if s.Page > 1 {
		q.Set(pageParameter, strconv.Itoa(s.Page))
	}
	return q
}

// address is a page with this selection.
func (s selection) address(path string) string {
	if q := s.values().Encode(); q != "" {
		return path + "?" + q
	}
	return path
}

// hidden are the parameters but for those that a form has as fields, for its hidden fields.
func (s selection) hidden(fields ...string) []parameter {
	s.Page = 1
	q := s.values()
	for _, f := range fields {
		q.Del(f)
	}
	var list []parameter
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[name] {
			list = append(list, parameter{name, v})
		}
	}
	return list
}

type parameter struct{ Name, Value string }

// with returns the selection with one parameter changed, at its first page. An empty value selects
// all.
func (s selection) with(name, value string) selection {
	s.Page = 1
	switch name {
	case programParameter:
		s.Program = value
	case versionParameter:
		s.Version = value
	case hostParameter:
		s.Host = value
	}
	return s
}

// between returns the selection with other days, at its first page.
func (s selection) between(from, to time.Time) selection {
	s.From, s.To, s.Page = from, to, 1
	return s
}

// without returns the selection without a label, at its first page.
func (s selection) without(label string) selection {
	s.Page = 1
	s.Labels = slices.DeleteFunc(slices.Clone(s.Labels), func(l string) bool { return l == label })
	return s
}

// takesDay reports whether the day of a failure is selected.
func (s *selection) takesDay(at time.Time) bool {
	return (s.From.IsZero() || !at.Before(s.From)) && (s.To.IsZero() || at.Before(s.To.AddDate(0, 0, 1)))
}

// takesRest reports whether an entry is selected but for its day.
func (s *selection) takesRest(e *corpus.Entry) bool {
	if s.Program != "" && e.Name() != s.Program || s.Version != "" && versionOf(e) != s.Version || s.Host != "" && e.Labels[hostLabel] != s.Host {
		return false
	}
	for _, l := range s.Labels {
		key, value, err := corpus.ParseLabel(l)
		if have, ok := e.Labels[key]; err != nil || !ok || have != value {
			return false
		}
	}
	return true
}
