package page

import (
	"maps"
	"net/http"
	"slices"

	"diagnose/corpus"
)

// changeLabels sets or removes one label of a failure.
func (s *Server) changeLabels(q *request) error {
	if !s.session.isForm(q.Request) {
		return &statusError{http.StatusForbidden, "the form is not of this session; load the page again"}
	}
	st, err := q.state()
	if err != nil {
		return err
	}
	e, err := q.failureOf(st)
	if err != nil {
		return err
	}
	key, value := q.PostFormValue("key"), q.PostFormValue("value")
	set, remove := map[string]string{key: value}, []string(nil)
	if q.PostFormValue("action") == "remove" {
		set, remove = nil, []string{key}
	}
	// Only this change needs the right to change the corpus, so that a server can run without it.
	c, err := corpus.Change(q.Context(), s.opts.Corpus.Dir)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Label(q.Context(), e.ID, set, remove); err != nil {
		return err
	}
	s.keep.relabel(e.ID, set, remove)
	http.Redirect(q.w, q.Request, "/failure/"+e.ID, http.StatusSeeOther)
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
