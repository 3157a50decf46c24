package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Tracked is what a bug tracker was told of a cluster.
type Tracked struct {
	// Issue is its number or key in the tracker, empty if nothing was told yet; URL
	// where people see it.
	Issue string
	URL   string
	// Attached says that the whole report is there.
	Attached bool
	// Count is how many failures the tracker was told of, Last when the newest was, At
	// when it was told.
	Count    int
	Last, At time.Time
}

// ClaimTracked takes a cluster to tell a tracker of it, for as long as this process
// lives, and returns what was told before. The error is ErrTaken if another process
// that lives has it.
func (c *Corpus) ClaimTracked(ctx context.Context, tracker, digest string) (Tracked, error) {
	var t Tracked
	err := c.change(ctx, func(tx *sql.Tx) error {
		var owner string
		var last, at int64
		err := tx.QueryRowContext(ctx, "SELECT owner, issue, url, attached, count, last, at FROM tracked WHERE tracker = ? AND digest = ?", tracker, digest).
			Scan(&owner, &t.Issue, &t.URL, &t.Attached, &t.Count, &last, &at)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			_, err = tx.ExecContext(ctx, "INSERT INTO tracked (tracker, digest, owner) VALUES (?, ?, ?)", tracker, digest, c.owner.name)
			return err
		case err != nil:
			return err
		case owner != "" && owner != c.owner.name && alive(c.Dir, owner):
			return ErrTaken
		}
		if t.Issue != "" {
			t.Last, t.At = time.Unix(0, last).UTC(), time.Unix(0, at).UTC()
		}
		_, err = tx.ExecContext(ctx, "UPDATE tracked SET owner = ? WHERE tracker = ? AND digest = ?", c.owner.name, tracker, digest)
		return err
	})
	return t, err
}

// FinishTracked notes what a tracker was told, and gives the claim back; with nil,
// only that. what is a word for the history.
func (c *Corpus) FinishTracked(ctx context.Context, tracker, digest, what string, t *Tracked) error {
	return c.change(ctx, func(tx *sql.Tx) error {
		if t == nil {
			_, err := tx.ExecContext(ctx, "UPDATE tracked SET owner = '' WHERE tracker = ? AND digest = ? AND owner = ?", tracker, digest, c.owner.name)
			return err
		}
		done, err := tx.ExecContext(ctx, "UPDATE tracked SET owner = '', issue = ?, url = ?, attached = ?, count = ?, last = ?, at = ? WHERE tracker = ? AND digest = ? AND owner = ?",
			t.Issue, t.URL, t.Attached, t.Count, t.Last.UnixNano(), t.At.UnixNano(), tracker, digest, c.owner.name)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrTaken)
		}
		return note(ctx, tx, digest, what, fmt.Sprintf("%s %s", tracker, t.Issue))
	})
}

// Tracked returns what a tracker was told of a cluster; its Issue is empty if that is
// nothing.
func (c *Corpus) Tracked(ctx context.Context, tracker, digest string) (Tracked, error) {
	var t Tracked
	var last, at int64
	err := c.db.QueryRowContext(ctx, "SELECT issue, url, attached, count, last, at FROM tracked WHERE tracker = ? AND digest = ?", tracker, digest).
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
