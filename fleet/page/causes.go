package page

import (
	"slices"

	"diagnose/corpus"
)

// selected are the failures of a selection, for a page that lists them or their causes.
type selected struct {
	selection selection
	// list are the selected failures, the newest first. shown are those of the chart: any day.
	list, anyDay []*corpus.Entry
}

// choose reads a request's selection. Passed runs are in it only if passed is set.
func (s *Server) choose(q *request, st *state, passed bool) (*selected, error) {
	sel, err := parseSelection(q.URL.Query())
	if err != nil {
		return nil, badRequest(err.Error())
	}
	x := &selected{selection: sel}
	for i := range st.entries {
		e := &st.entries[i]
		if e.Passed && !passed || !sel.takesRest(e) {
			continue
		}
		x.anyDay = append(x.anyDay, e)
		if sel.takesDay(e.FailedAt) {
			x.list = append(x.list, e)
		}
	}
	return x, nil
}

// listing is what the pages of causes and of failures share.
type listing struct {
	frame
	Chart  chart
	Facets []facet
	// Labels are the chosen ones, each with the address without it.
	Labels []choice
	Pages  pages
	Left   int
	// Other is the same selection as the other list.
	Other string
}

func (s *Server) listing(q *request, title, path, other string, st *state, x *selected) listing {
	l := listing{frame: s.frame(q, title, path), Chart: chartOf(path, x.selection, x.anyDay, s.keep.now()), Facets: facetsOf(path, x.selection, x.list), Left: st.left}
	for _, t := range x.selection.Labels {
		l.Labels = append(l.Labels, choice{Name: t, Href: x.selection.without(t).address(path)})
	}
	rest := x.selection
	rest.Page = 1
	l.Other = rest.address(other)
	return l
}

func (s *Server) causesPage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	x, err := s.choose(q, st, false)
	if err != nil {
		return err
	}
	recent, none := map[string]int{}, 0
	for _, e := range x.list {
		if c := clusterOf(e); c != "" {
			recent[c]++
		} else {
			none++
		}
	}
	now := s.keep.now()
	since := now.Add(-periodNamed(x.selection.Since).length)
	var chosen []*cause
	for i := range st.causes {
		if c := &st.causes[i]; recent[c.Digest] > 0 && (x.selection.State == "" || c.stands(since) == x.selection.State) {
			chosen = append(chosen, c)
		}
	}
	if x.selection.ByCount {
		slices.SortStableFunc(chosen, func(a, b *cause) int { return recent[b.Digest] - recent[a.Digest] })
	}
	data := struct {
		listing
		Cards       []card
		Undiagnosed int
		State       standing
		ByCount     bool
		Sort        string
	}{listing: s.listing(q, "Causes", "/causes", "/failures", st, x), Undiagnosed: none, State: x.selection.State, ByCount: x.selection.ByCount}
	other := x.selection
	other.ByCount, other.Page = !other.ByCount, 1
	data.Sort = other.address("/causes")
	var shown []*cause
	shown, data.Pages = paged(chosen, "/causes", x.selection)
	for _, c := range shown {
		data.Cards = append(data.Cards, c.card(now, recent[c.Digest]))
	}
	return s.show(q, "causes", data)
}

func (s *Server) failuresPage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	x, err := s.choose(q, st, false)
	if err != nil {
		return err
	}
	data := struct {
		listing
		Rows []row
	}{listing: s.listing(q, "Failures", "/failures", "/causes", st, x)}
	shown, p := paged(x.list, "/failures", x.selection)
	data.Pages, data.Rows = p, s.rows(shown)
	return s.show(q, "failures", data)
}
