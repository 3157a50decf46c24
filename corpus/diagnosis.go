package corpus

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"diagnose/evidence/signature"
)

const statusDiagnosed, statusUndiagnosed = "diagnosed", "undiagnosed"

// mostReport is the maximum size of a JSON document that is read.
const mostReport = 256 << 20

// ErrTaken says that another process diagnoses an entry, has diagnosed it, or has removed it.
var ErrTaken = errors.New("corpus: the entry is another process's, or gone")

// diagnoses are the results for entries, their reports and signatures, and the claims of the
// processes that make them.
type diagnoses struct {
	store   *store
	entries *entries
}

// Claim claims an entry for a diagnosis, for as long as this process lives. It fails with
// ErrTaken if another living process has claimed it, if it has a diagnosis of this version, or
// if its files are gone.
func (d *diagnoses) Claim(ctx context.Context, id, version string) error {
	return d.store.change(ctx, func(tx *sql.Tx) error {
		var free bool
		err := tx.QueryRowContext(ctx, `SELECT dropped_at IS NULL AND NOT EXISTS (SELECT 1 FROM diagnoses WHERE entry = e.id AND version = ?)
			FROM entries e WHERE id = ?`, version, id).Scan(&free)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !free {
			return ErrTaken
		}
		if err != nil {
			return err
		}
		var owner string
		switch err := tx.QueryRowContext(ctx, "SELECT owner FROM claims WHERE entry = ?", id).Scan(&owner); {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case alive(d.store.dir, owner):
			return ErrTaken
		}
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO claims (entry, owner, at) VALUES (?, ?, ?)", id, d.store.owner.name, time.Now().UnixNano())
		return err
	})
}

// Release releases a claim.
func (d *diagnoses) Release(ctx context.Context, id string) error {
	return d.store.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM claims WHERE entry = ? AND owner = ?", id, d.store.owner.name)
		return err
	})
}

// Claimed returns the entries that living processes have claimed.
func (d *diagnoses) Claimed(ctx context.Context) (map[string]bool, error) {
	rows, err := d.store.db.QueryContext(ctx, "SELECT entry, owner FROM claims")
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer rows.Close()
	set := map[string]bool{}
	for rows.Next() {
		var entry, owner string
		if err := rows.Scan(&entry, &owner); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		if alive(d.store.dir, owner) {
			set[entry] = true
		}
	}
	return set, rows.Err()
}

// Result is the data that Finish writes.
type Result struct {
	Diagnosis
	// Signature is that of the report. Report is the JSON document, nil without one.
	Signature signature.Signature
	Report    []byte
	// Program and BuildID are those in the report, for an entry without them: a core.
	Program, BuildID, Ended string
}

// Finish writes the result for an entry that this process had claimed, and ends the claim, both
// or neither. It fails with ErrTaken if the entry is gone.
func (d *diagnoses) Finish(ctx context.Context, id string, r Result) error {
	report, err := pack(r.Report)
	if err != nil {
		return err
	}
	r.Stack, r.Cause = r.Signature.Stack, r.Signature.Cause
	return d.store.change(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM claims WHERE entry = ? AND owner = ?", id, d.store.owner.name)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, ErrTaken)
		}
		_, err = tx.ExecContext(ctx, `UPDATE entries SET program = CASE program WHEN '' THEN ? ELSE program END,
			build_id = CASE build_id WHEN '' THEN ? ELSE build_id END, ended = CASE ended WHEN '' THEN ? ELSE ended END WHERE id = ?`, r.Program, r.BuildID, r.Ended, id)
		if err != nil {
			return err
		}
		if err := insertDiagnosis(ctx, tx, id, &r.Diagnosis, report); err != nil {
			return err
		}
		if err := insertSignature(ctx, tx, r.Signature); err != nil {
			return err
		}
		what, detail := statusDiagnosed, r.Summary
		if !r.Diagnosed {
			what, detail = statusUndiagnosed, r.Reason
		}
		return note(ctx, tx, id, what, r.Version+": "+detail)
	})
}

func insertDiagnosis(ctx context.Context, tx *sql.Tx, id string, d *Diagnosis, report []byte) error {
	status := statusUndiagnosed
	if d.Diagnosed {
		status = statusDiagnosed
	}
	_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO diagnoses (entry, version, status, reason, stack, cause, kind, proof, summary, class, estimate, started_at, took_ns, cpu_ns, rss_bytes, report)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		id, d.Version, status, d.Reason, d.Stack, d.Cause, d.Kind, d.Proof, d.Summary, string(d.Class), string(d.Estimate), d.Started.UnixNano(), d.Took.Nanoseconds(), d.CPU.Nanoseconds(), d.Memory, report)
	return err
}

func insertSignature(ctx context.Context, tx *sql.Tx, s signature.Signature) error {
	for digest, lines := range map[string][]string{s.Stack: s.StackLines, s.Cause: s.CauseLines} {
		if digest == "" {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO signatures (digest, lines) VALUES (?, ?)", digest, strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// Undiagnosed returns the entries that a version of diagnose has not seen, the newest failure
// first, without the runs that passed.
func (d *diagnoses) Undiagnosed(ctx context.Context, version string) ([]Entry, error) {
	done, err := column(ctx, d.store.db, "SELECT entry FROM diagnoses WHERE version = ?", version)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	list, err := d.entries.List(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(e Entry) bool { return e.Passed || done[e.ID] }), nil
}

// Forget removes a version's diagnoses without a report, so that they are tried again, and
// returns how many there were.
func (d *diagnoses) Forget(ctx context.Context, version string) (int64, error) {
	var n int64
	err := d.store.change(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, "DELETE FROM diagnoses WHERE version = ? AND status = ?", version, statusUndiagnosed)
		if err == nil {
			n, err = done.RowsAffected()
		}
		return err
	})
	return n, err
}

// Diagnoses returns all diagnoses of an entry, the earliest first.
func (d *diagnoses) Diagnoses(ctx context.Context, id string) ([]Diagnosis, error) {
	rows, err := d.store.db.QueryContext(ctx, `SELECT version, status, reason, stack, cause, kind, proof, summary, class, estimate, started_at, took_ns, cpu_ns, rss_bytes
		FROM diagnoses WHERE entry = ? ORDER BY id`, id)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer rows.Close()
	list := []Diagnosis{}
	for rows.Next() {
		var d Diagnosis
		var status string
		var started, took, cpu int64
		if err := rows.Scan(&d.Version, &status, &d.Reason, &d.Stack, &d.Cause, &d.Kind, &d.Proof, &d.Summary, &d.Class, &d.Estimate, &started, &took, &cpu, &d.Memory); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		d.Diagnosed, d.Started, d.Took, d.CPU = status == statusDiagnosed, time.Unix(0, started).UTC(), time.Duration(took), time.Duration(cpu)
		list = append(list, d)
	}
	return list, rows.Err()
}

// Report returns the JSON document of an entry's last diagnosis that has one. It fails with an
// *InputError if there is none.
func (d *diagnoses) Report(ctx context.Context, id string) ([]byte, error) {
	var packed []byte
	err := d.store.db.QueryRowContext(ctx, "SELECT report FROM diagnoses WHERE entry = ? AND report IS NOT NULL ORDER BY id DESC LIMIT 1", id).Scan(&packed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, inputf("the entry %s has no report", id)
	}
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	return unpack(packed)
}

// pack compresses a report; nil stays nil.
func pack(report []byte) ([]byte, error) {
	if report == nil {
		return nil, nil
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(report); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// unpack decompresses a report that may come from an imported archive.
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("corpus: the report: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostReport+1))
	if err == nil && len(text) > mostReport {
		err = fmt.Errorf("it has more than %d bytes", mostReport)
	}
	if err != nil {
		return nil, fmt.Errorf("corpus: the report: %w", err)
	}
	return text, nil
}

// Lines returns the lines of a signature.
func (d *diagnoses) Lines(ctx context.Context, digest string) ([]string, error) {
	var lines string
	err := d.store.db.QueryRowContext(ctx, "SELECT lines FROM signatures WHERE digest = ?", digest).Scan(&lines)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, inputf("the corpus has no signature %q", digest)
	}
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	return strings.Split(lines, "\n"), nil
}
