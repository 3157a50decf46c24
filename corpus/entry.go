package corpus

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"diagnose/evidence"
)

// Entry is a failure in the corpus.
type Entry struct {
	// ID is a digest of its files, in hexadecimal. Kind is recording or core.
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Program is the path of the executable, BuildID its build-id. Both are empty for a core
	// that was not diagnosed.
	Program string `json:"program,omitempty"`
	BuildID string `json:"build_id,omitempty"`
	// Outcome describes how it ended, Ended in one word (SIGSEGV, exit-1, passed).
	Outcome string `json:"outcome"`
	Ended   string `json:"ended,omitempty"`
	// Passed says that the run did not fail. Failed runs are compared with it.
	Passed bool `json:"passed,omitempty"`
	// Culprit is the directory, in a recording, of the process that failed, "." for the first.
	Culprit string `json:"culprit,omitempty"`
	// FailedAt is when the run ended, or the time of a core's file. AddedAt is when it was
	// added.
	FailedAt time.Time `json:"failed_at"`
	AddedAt  time.Time `json:"added_at"`
	// DroppedAt is when gc removed its files; nil: they exist.
	DroppedAt *time.Time `json:"dropped_at,omitempty"`
	// Bytes is its space on the disk, Source the path from which it was added.
	Bytes  int64  `json:"bytes"`
	Source string `json:"source"`
	// Imported says that it came in an archive or from an engine: a replay of it runs code that its
	// sender chose. Source begins with the engine.
	Imported bool `json:"imported,omitempty"`
	// Labels are the labels that users gave it.
	Labels map[string]string `json:"labels,omitempty"`
	// Diagnosis is the last diagnosis; nil before the first.
	Diagnosis *Diagnosis `json:"diagnosis,omitempty"`

	// likeness is equal for failures that look alike before they are diagnosed.
	likeness string
}

// Name returns the name of the program for lists.
func (e *Entry) Name() string {
	if e.Program == "" {
		return e.Kind
	}
	return e.Program[strings.LastIndexByte(e.Program, '/')+1:]
}

// Likeness is equal for entries that look alike before they are diagnosed: of one program that
// ended in the same way at the same place.
func (e *Entry) Likeness() string { return e.likeness }

// Diagnosis is the result of one version of diagnose for an entry.
type Diagnosis struct {
	// Version is the version of diagnose.
	Version string `json:"version"`
	// Diagnosed says that there is a report. Reason says what the report lacks or, without a
	// report, why there is none.
	Diagnosed bool   `json:"diagnosed"`
	Reason    string `json:"reason,omitempty"`
	// Stack and Cause are the digests of the signatures.
	Stack string `json:"stack,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Kind, Proof and Summary are those of the first cause or, if no cause is known, of the
	// failure.
	Kind    string `json:"kind,omitempty"`
	Proof   string `json:"proof,omitempty"`
	Summary string `json:"summary,omitempty"`
	// Class and Estimate are those of the report's severity; empty: it has none, or an earlier
	// version made the diagnosis.
	Class    evidence.SeverityClass  `json:"severity_class,omitempty"`
	Estimate evidence.Exploitability `json:"severity,omitempty"`
	// Started and Took are the times of the analysis, CPU is its processor time, and Memory the
	// largest resident memory of its processes together, in bytes.
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	CPU     time.Duration `json:"cpu_ns"`
	Memory  int64         `json:"memory_bytes,omitempty"`
}

// Cluster is the digest by which failures are grouped: that of the cause if there is one.
func (d *Diagnosis) Cluster() string {
	if d.Cause != "" {
		return d.Cause
	}
	return d.Stack
}

// Filter selects entries. Fields that are not set select all.
type Filter struct {
	// Labels must all be set on the entry.
	Labels map[string]string
	// Program is the base name of the executable, Cluster a signature or a prefix of one, IDs
	// the names of entries.
	Program, Cluster string
	IDs              []string
	// Since leaves out earlier failures.
	Since time.Time
	// Dropped includes entries whose files are gone.
	Dropped bool
}

// Takes reports whether the filter selects an entry.
func (f *Filter) Takes(e *Entry) bool {
	if e.DroppedAt != nil && !f.Dropped || f.Program != "" && e.Name() != f.Program || e.FailedAt.Before(f.Since) {
		return false
	}
	for k, v := range f.Labels {
		if have, ok := e.Labels[k]; !ok || have != v {
			return false
		}
	}
	if f.Cluster != "" && (e.Diagnosis == nil || !strings.HasPrefix(e.Diagnosis.Cause, f.Cluster) && !strings.HasPrefix(e.Diagnosis.Stack, f.Cluster)) {
		return false
	}
	if len(f.IDs) == 0 {
		return true
	}
	for _, id := range f.IDs {
		if id == e.ID {
			return true
		}
	}
	return false
}

// entries are the rows of the failures.
type entries struct{ store *store }

// List returns the entries that a filter selects, the newest failure first.
func (l *entries) List(ctx context.Context, f Filter) ([]Entry, error) {
	// A transaction would block writers while it lasts. A single statement also sees one state.
	rows, err := l.store.db.QueryContext(ctx, `SELECT e.id, e.kind, e.program, e.build_id, e.outcome, e.ended, e.likeness, e.culprit, e.passed, e.failed_at, e.added_at, e.bytes, e.source, e.imported, e.dropped_at,
		(SELECT group_concat(key || char(31) || value, char(30)) FROM labels WHERE entry = e.id),
		d.version, d.status, d.reason, d.stack, d.cause, d.kind, d.proof, d.summary, d.class, d.estimate, d.started_at, d.took_ns, d.cpu_ns, d.rss_bytes
		FROM entries e LEFT JOIN diagnoses d ON d.id = (SELECT max(id) FROM diagnoses WHERE entry = e.id)
		WHERE e.failed_at >= ? ORDER BY e.failed_at DESC, e.id`, nanoseconds(f.Since))
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer rows.Close()
	var list []Entry
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		if f.Takes(&e) {
			list = append(list, e)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	return list, nil
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 63
	}
	return t.UnixNano()
}

func scanEntry(rows *sql.Rows) (Entry, error) {
	var e Entry
	var d Diagnosis
	var failed, added int64
	var dropped, started, took, cpu, memory sql.NullInt64
	var labels, version, status, reason, stack, cause, kind, proof, summary, class, estimate sql.NullString
	err := rows.Scan(&e.ID, &e.Kind, &e.Program, &e.BuildID, &e.Outcome, &e.Ended, &e.likeness, &e.Culprit, &e.Passed, &failed, &added, &e.Bytes, &e.Source, &e.Imported, &dropped,
		&labels, &version, &status, &reason, &stack, &cause, &kind, &proof, &summary, &class, &estimate, &started, &took, &cpu, &memory)
	if err != nil {
		return e, err
	}
	e.FailedAt, e.AddedAt = time.Unix(0, failed).UTC(), time.Unix(0, added).UTC()
	if dropped.Valid {
		at := time.Unix(0, dropped.Int64).UTC()
		e.DroppedAt = &at
	}
	if labels.Valid {
		e.Labels = map[string]string{}
		for _, pair := range strings.Split(labels.String, "\x1e") {
			k, v, _ := strings.Cut(pair, "\x1f")
			e.Labels[k] = v
		}
	}
	if !version.Valid {
		return e, nil
	}
	d = Diagnosis{version.String, status.String == statusDiagnosed, reason.String, stack.String, cause.String, kind.String, proof.String, summary.String,
		evidence.SeverityClass(class.String), evidence.Exploitability(estimate.String),
		time.Unix(0, started.Int64).UTC(), time.Duration(took.Int64), time.Duration(cpu.Int64), memory.Int64}
	e.Diagnosis = &d
	return e, nil
}

// Find returns the entry whose name begins with a prefix.
func (l *entries) Find(ctx context.Context, prefix string) (Entry, error) {
	list, err := l.List(ctx, Filter{Dropped: true})
	if err != nil {
		return Entry{}, err
	}
	var found []Entry
	for i := range list {
		if strings.HasPrefix(list[i].ID, prefix) {
			found = append(found, list[i])
		}
	}
	switch {
	case len(found) == 0 || prefix == "":
		return Entry{}, inputf("the corpus has no entry %q", prefix)
	case len(found) > 1:
		return Entry{}, inputf("%q is not clear: %d entries begin so", prefix, len(found))
	}
	return found[0], nil
}

// Event is a line of an entry's history.
type Event struct {
	// At is when it happened.
	At time.Time `json:"at"`
	// What happened: added, diagnosed, dropped, ... Detail has more details.
	What   string `json:"what"`
	Detail string `json:"detail,omitempty"`
}

// History returns the events of an entry, or of a cluster, the earliest first.
func (l *entries) History(ctx context.Context, id string) ([]Event, error) {
	rows, err := l.store.db.QueryContext(ctx, "SELECT at, what, detail FROM history WHERE entry = ? ORDER BY id", id)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer rows.Close()
	list := []Event{}
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&at, &e.What, &e.Detail); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		e.At = time.Unix(0, at).UTC()
		list = append(list, e)
	}
	return list, rows.Err()
}
