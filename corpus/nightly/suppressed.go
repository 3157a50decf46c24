package nightly

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"diagnose/corpus"
	"diagnose/evidence/suppress"
	"diagnose/reports"
)

// Suppressed is a suppression and the failures that it fits.
type Suppressed struct {
	// Entry counts the entries of the file, from 1; 0: a label of the corpus.
	Entry int `json:"entry,omitempty"`
	// Reason is why, Until the last day.
	Reason string `json:"reason"`
	Until  string `json:"until"`
	// Recent counts its failures in the period, Count all.
	Recent int `json:"recent"`
	Count  int `json:"count"`
}

// SuppressedEntries finds the entries of a corpus that a list or their labels suppress, and counts
// them by suppression.
type SuppressedEntries struct {
	corpus *corpus.Corpus
	list   *suppress.List
	now    time.Time
	used   []Suppressed
	past   []Suppressed
	since  time.Time
}

// NewSuppressed counts for a corpus, at a time.
func NewSuppressed(c *corpus.Corpus, list *suppress.List, now time.Time) *SuppressedEntries {
	return &SuppressedEntries{corpus: c, list: list, now: now}
}

// Without returns the entries that are not suppressed. since is the beginning of the period.
func (s *SuppressedEntries) Without(ctx context.Context, entries []corpus.Entry, since time.Time) ([]corpus.Entry, error) {
	s.since = since
	var kept []corpus.Entry
	for i := range entries {
		hidden, err := s.hides(ctx, &entries[i])
		if err != nil {
			return nil, err
		}
		if !hidden {
			kept = append(kept, entries[i])
		}
	}
	return kept, nil
}

func (s *SuppressedEntries) hides(ctx context.Context, e *corpus.Entry) (bool, error) {
	if e.Passed {
		return false, nil
	}
	if value, ok := e.Labels[suppress.LabelKey]; ok {
		// A corpus of an earlier version may have any value: that is no suppression.
		if rule, err := suppress.ParseLabel(value); err == nil && !s.note(&rule, rule.Expired(s.now), e) {
			return true, nil
		}
	}
	if s.list == nil || e.Diagnosis == nil || !e.Diagnosis.Diagnosed {
		return false, nil
	}
	subject := s.subject(ctx, e)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	rule, expired := s.list.Match(subject, s.now)
	switch {
	case rule != nil:
		s.note(rule, false, e)
	case expired != nil:
		s.note(expired, true, e)
	}
	return rule != nil, nil
}

// subject is what the rules need: of the report only if a signature is not enough. A failure whose
// report cannot be read, which an archive may have brought, has no stack, and is told: one bad report
// must not stop the night.
func (s *SuppressedEntries) subject(ctx context.Context, e *corpus.Entry) *suppress.Subject {
	known := []string{e.Diagnosis.Cause, e.Diagnosis.Stack}
	plain := &suppress.Subject{Signatures: known, Kinds: []string{e.Diagnosis.Kind}}
	if !s.list.NeedsStacks() {
		return plain
	}
	text, err := s.corpus.Report(ctx, e.ID)
	if err != nil {
		return plain
	}
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil || doc.Case == nil {
		return plain
	}
	subject := suppress.SubjectOf(doc.Case)
	subject.Signatures = known // the report's secrets were replaced
	return subject
}

// note counts a failure, and returns whether its suppression has expired.
func (s *SuppressedEntries) note(r *suppress.Rule, expired bool, e *corpus.Entry) bool {
	list := &s.used
	if expired {
		list = &s.past
	}
	x := shownRule(r)
	i := slices.IndexFunc(*list, func(y Suppressed) bool { return y.Entry == x.Entry && y.Reason == x.Reason && y.Until == x.Until })
	if i < 0 {
		i, *list = len(*list), append(*list, x)
	}
	(*list)[i].Count++
	if !e.FailedAt.Before(s.since) {
		(*list)[i].Recent++
	}
	return expired
}

func shownRule(r *suppress.Rule) Suppressed {
	return Suppressed{Entry: r.Number, Reason: r.Reason, Until: r.Until.Format(time.DateOnly)}
}

// Used are the suppressions that apply, Expired those that would but for their last day.
func (s *SuppressedEntries) Used() []Suppressed { return s.used }

// Expired are the suppressions that fit failures, and whose last day is over.
func (s *SuppressedEntries) Expired() []Suppressed { return s.past }

// Unused are the entries of the list that fit no failure.
func (s *SuppressedEntries) Unused() []Suppressed {
	if s.list == nil {
		return nil
	}
	var list []Suppressed
	for i := range s.list.Rules {
		r := &s.list.Rules[i]
		same := func(x Suppressed) bool { return x.Entry == r.Number }
		if !slices.ContainsFunc(s.used, same) && !slices.ContainsFunc(s.past, same) {
			list = append(list, shownRule(r))
		}
	}
	return list
}

// line is a suppression for people.
func (x *Suppressed) line() string {
	by := "a label"
	if x.Entry > 0 {
		by = fmt.Sprintf("entry %d", x.Entry)
	}
	return fmt.Sprintf("%s, until %s: %s", by, x.Until, x.Reason)
}
