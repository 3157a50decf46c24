package page

import (
	"slices"
	"strings"

	"diagnose/corpus"
)

// mostWords bounds the words of a search, mostFound the failures that it lists.
const (
	mostWords = 8
	mostFound = 50
)

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// searchPage finds the causes and failures that have all words of a text: programs, versions,
// hosts, kinds, what a cause is known by, tickets, labels, and the functions, variables and files
// that reports name.
func (s *Server) searchPage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	sel, err := parseSelection(q.URL.Query())
	if err != nil {
		return badRequest(err.Error())
	}
	words := strings.Fields(strings.ToLower(sel.Query))
	if len(words) > mostWords {
		return badRequest("a search takes eight words")
	}
	data := struct {
		frame
		Cards  []card
		Pages  pages
		Rows   []row
		More   int
		Unread int
	}{frame: s.frame(q, "Search", "/search")}
	data.Query = sel.Query
	if len(words) == 0 {
		return s.show(q, "search", data)
	}
	var found, rest []*cause
	for i := range st.causes {
		if c := &st.causes[i]; containsAll(c.text, words) {
			found = append(found, c)
		} else {
			rest = append(rest, c)
		}
	}
	named, unread, err := s.names.find(q.Context(), rest, words)
	if err != nil {
		return err
	}
	data.Unread = unread
	shown, p := paged(slices.Concat(found, named), "/search", sel)
	data.Pages = p
	for _, c := range shown {
		data.Cards = append(data.Cards, c.card(s.keep.now(), c.Count))
	}
	var failures []*corpus.Entry
	for i := range st.entries {
		if e := &st.entries[i]; containsAll(failureText(e), words) {
			if len(failures) == mostFound {
				data.More++
				continue
			}
			failures = append(failures, e)
		}
	}
	data.Rows = s.rows(failures)
	return s.show(q, "search", data)
}

// failureText is what a search looks at of one failure, in lower case, without what its cause has.
func failureText(e *corpus.Entry) string {
	var b strings.Builder
	b.WriteString(e.ID + "\n" + e.Name() + "\n" + e.BuildID + "\n" + e.Ended)
	for k, v := range e.Labels {
		b.WriteString("\n" + k + "=" + v)
	}
	return strings.ToLower(b.String())
}
