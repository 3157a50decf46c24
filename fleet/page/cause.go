package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"diagnose/corpus"
	"diagnose/reports"
)

// causeOf returns the cause that a request names.
func (q *request) causeOf(st *state) (*cause, error) {
	c := st.byDigest[q.PathValue("digest")]
	if c == nil {
		return nil, notFound("the corpus has no such cause, or all its failures are suppressed")
	}
	return c, nil
}

// failureOf returns the failure that a request names.
func (q *request) failureOf(st *state) (*corpus.Entry, error) {
	i, ok := st.byID[q.PathValue("id")]
	if !ok {
		return nil, notFound("the corpus has no such failure, or it is suppressed")
	}
	return &st.entries[i], nil
}

func (s *Server) causePage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	c, err := q.causeOf(st)
	if err != nil {
		return err
	}
	sel, err := parseSelection(q.URL.Query())
	if err != nil {
		return badRequest(err.Error())
	}
	path := "/cause/" + c.Digest
	var all, list []*corpus.Entry
	for i := range c.Entries {
		e := &c.Entries[i]
		if !sel.takesRest(e) {
			continue
		}
		all = append(all, e)
		if sel.takesDay(e.FailedAt) {
			list = append(list, e)
		}
	}
	now := s.keep.now()
	data := struct {
		frame
		card
		Chart                     chart
		Facets                    []facet
		Rows                      []row
		Pages                     pages
		History                   []corpus.Event
		FirstVersion, FirstCommit interval
		Path                      string
		Report                    bool
	}{frame: s.frame(q, c.Kind+" in "+c.Program, ""), card: c.card(now, len(list)), Chart: chartOf(path, sel, all, now), Facets: facetsOf(path, sel, list), Path: path}
	if data.History, err = s.opts.Corpus.History(q.Context(), c.Digest); err != nil {
		return err
	}
	d := s.opts.Redact.Redactor()
	for i := range data.History {
		data.History[i].Detail = d.Text(data.History[i].Detail)
	}
	data.FirstVersion, data.FirstCommit = st.firstSeen(c, versionOf), st.firstSeen(c, labelled(commitLabel))
	shown, p := paged(list, path, sel)
	data.Rows, data.Pages = s.rows(shown), p
	for i := range data.Rows {
		data.Rows[i].Summary = "" // the page has it above
	}
	data.Report = c.reported() != ""
	return s.show(q, "cause", data)
}

// reported is the newest failure with a report; "" for none.
func (c *cause) reported() string {
	for i := range c.Entries {
		if c.Entries[i].Diagnosis.Diagnosed {
			return c.Entries[i].ID
		}
	}
	return ""
}

func (s *Server) failurePage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	e, err := q.failureOf(st)
	if err != nil {
		return err
	}
	d := s.opts.Redact.Redactor()
	shown := *e
	shown.Outcome, shown.Program, shown.Source = d.Text(e.Outcome), d.Text(e.Program), d.Text(e.Source)
	data := struct {
		frame
		Row       row
		Entry     corpus.Entry
		AllLabels []label
		Diagnoses []corpus.Diagnosis
		History   []corpus.Event
		Path      string
		Report    bool
	}{frame: s.frame(q, "Failure of "+d.Text(e.Name()), ""), Row: s.rows([]*corpus.Entry{e})[0], Entry: shown, Path: "/failure/" + e.ID, Report: e.Diagnosis != nil && e.Diagnosis.Diagnosed}
	for _, k := range sortedKeys(e.Labels) {
		data.AllLabels = append(data.AllLabels, label{k, d.Text(e.Labels[k])})
	}
	if data.Diagnoses, err = s.opts.Corpus.Diagnoses(q.Context(), e.ID); err != nil {
		return err
	}
	if data.History, err = s.opts.Corpus.History(q.Context(), e.ID); err != nil {
		return err
	}
	for i := range data.Diagnoses {
		x := &data.Diagnoses[i]
		x.Summary, x.Reason = d.Text(x.Summary), d.Text(x.Reason)
	}
	for i := range data.History {
		data.History[i].Detail = d.Text(data.History[i].Detail)
	}
	return s.show(q, "failure", data)
}

func (s *Server) causeReport(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	c, err := q.causeOf(st)
	if err != nil {
		return err
	}
	return s.report(q, c.reported())
}

func (s *Server) failureReport(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	e, err := q.failureOf(st)
	if err != nil {
		return err
	}
	return s.report(q, e.ID)
}

// reportPolicy puts a report into an origin of its own, wherever it is shown: its script reaches
// neither the server nor the page around it (HTML standard, 7.6 "Sandboxing"). What it may load
// and run is in the report's own policy.
const reportPolicy = "sandbox allow-scripts; frame-ancestors 'self'"

// report writes the report of a failure in its own form.
func (s *Server) report(q *request, id string) error {
	if id == "" {
		return notFound("no failure of this cause has a report")
	}
	text, err := s.opts.Corpus.Report(q.Context(), id)
	if err != nil {
		return err
	}
	doc, err := readDocument(text)
	if err != nil {
		return fmt.Errorf("the report of %s: %w", id, err)
	}
	var b bytes.Buffer
	if err := reports.Write(&b, doc.Case, reports.Options{Format: reports.HTML, Redact: s.opts.Redact, Version: doc.Tool.Version}); err != nil {
		return fmt.Errorf("the report of %s: %w", id, err)
	}
	h := q.w.Header()
	h.Set("Content-Security-Policy", reportPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Type", "text/html; charset=utf-8")
	q.w.WriteHeader(http.StatusOK)
	q.w.Write(b.Bytes()) // an error is the reader's connection
	return nil
}

// readDocument reads a report that the corpus has.
func readDocument(text []byte) (*reports.Document, error) {
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Case == nil {
		return nil, errors.New("it has no case")
	}
	return &doc, nil
}
