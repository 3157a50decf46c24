package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Tracked is the data that a bug tracker was given about a cluster.
type Tracked struct {
	// Issue is the number or key in the tracker, empty if there is none yet. URL is its page.
	Issue string
	URL   string
	// Attached says that the whole report was attached.
	Attached bool
	// Count is the number of failures reported to the tracker, Last the time of the newest one,
	// At the time of the report.
	Count    int
	Last, At time.Time
}

// reported is what bug trackers were told of clusters.
type reported struct{ store *store }

// ClaimTracked claims a cluster for a report to a tracker, for as long as this process lives,
// and returns the earlier report. It fails with ErrTaken if another living process has claimed
// it.
func (r *reported) ClaimTracked(ctx context.Context, tracker, digest string) (Tracked, error) {
	var t Tracked
	err := r.store.change(ctx, func(tx *sql.Tx) error {
		var owner string
		var last, at int64
		err := tx.QueryRowContext(ctx, "SELECT owner, issue, url, attached, count, last, at FROM tracked WHERE tracker = ? AND digest = ?", tracker, digest).
			Scan(&owner, &t.Issue, &t.URL, &t.Attached, &t.Count, &last, &at)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, "INSERT INTO tracked (tracker, digest, owner) VALUES (?, ?, ?)", tracker, digest, r.store.owner.name)
			return err
		case err != nil:
			return err
		case owner != "" && owner != r.store.owner.name && alive(r.store.dir, owner):
			return ErrTaken
		}
		if t.Issue != "" {
			t.Last, t.At = time.Unix(0, last).UTC(), time.Unix(0, at).UTC()
		}
		_, err = tx.ExecContext(ctx, "UPDATE tracked SET owner = ? WHERE tracker = ? AND digest = ?", r.store.owner.name, tracker, digest)
		return err
	})
	return t, err
}

// FinishTracked stores the report to a tracker, with a word for the history, and releases the
// claim. With nil it only releases the claim.
func (r *reported) FinishTracked(ctx context.Context, tracker, digest, what string, t *Tracked) error {
	return r.store.change(ctx, func(tx *sql.Tx) error {
		if t == nil {
			_, err := tx.ExecContext(ctx, "UPDATE tracked SET owner = '' WHERE tracker = ? AND digest = ? AND owner = ?", tracker, digest, r.store.owner.name)
			return err
		}
		done, err := tx.ExecContext(ctx, "UPDATE tracked SET owner = '', issue = ?, url = ?, attached = ?, count = ?, last = ?, at = ? WHERE tracker = ? AND digest = ? AND owner = ?",
			t.Issue, t.URL, t.Attached, t.Count, t.Last.UnixNano(), t.At.UnixNano(), tracker, digest, r.store.owner.name)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrTaken)
		}
		return note(ctx, tx, digest, what, fmt.Sprintf("%s %s", tracker, t.Issue))
	})
}

// Tracked returns the report of a cluster to a tracker. Its Issue is empty if there is none.
func (r *reported) Tracked(ctx context.Context, tracker, digest string) (Tracked, error) {
	var t Tracked
	var last, at int64
	err := r.store.db.QueryRowContext(ctx, "SELECT issue, url, attached, count, last, at FROM tracked WHERE tracker = ? AND digest = ?", tracker, digest).
		Scan(&t.Issue, &t.URL, &t.Attached, &t.Count, &last, &at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && t.Issue == "" {
		return Tracked{}, nil
	}
	if err != nil {
		return t, fmt.Errorf("corpus: %w", err)
	}
	t.Last, t.At = time.Unix(0, last).UTC(), time.Unix(0, at).UTC()
	return t, nil
}

// Owed returns the clusters that a process claimed for a tracker and never told it of.
func (r *reported) Owed(ctx context.Context, tracker string) (map[string]bool, error) {
	set, err := column(ctx, r.store.db, "SELECT digest FROM tracked WHERE tracker = ? AND issue = ''", tracker)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	return set, nil
}

// AlertPrefix begins the names under which alerts are noted. They are no trackers, and have no
// tickets.
const AlertPrefix = "alert:"

// Ticket is the report of a cluster to one tracker.
type Ticket struct {
	// Tracker is the tracker's name.
	Tracker string
	Tracked
}

// Tickets returns all that trackers were told, by the digest of the cluster, and for each in the
// order of the trackers' names.
func (r *reported) Tickets(ctx context.Context) (map[string][]Ticket, error) {
	rows, err := r.store.db.QueryContext(ctx, "SELECT digest, tracker, issue, url, attached, count, last, at FROM tracked WHERE issue <> '' AND substr(tracker, 1, ?) <> ? ORDER BY digest, tracker", len(AlertPrefix), AlertPrefix)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer rows.Close()
	all := map[string][]Ticket{}
	for rows.Next() {
		var digest string
		var t Ticket
		var last, at int64
		if err := rows.Scan(&digest, &t.Tracker, &t.Issue, &t.URL, &t.Attached, &t.Count, &last, &at); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		t.Last, t.At = time.Unix(0, last).UTC(), time.Unix(0, at).UTC()
		all[digest] = append(all[digest], t)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	return all, nil
}
