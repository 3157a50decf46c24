package corpus

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"
)

// Remove removes entries from the corpus, with all their data.
func (c *Corpus) Remove(ctx context.Context, ids ...string) error {
	err := c.change(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			done, err := tx.ExecContext(ctx, "DELETE FROM entries WHERE id = ?", id)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil || n == 0 {
				if err != nil {
					return err
				}
				return inputf("the corpus has no entry %q", id)
			}
			if err := note(ctx, tx, id, "removed", ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Directories without rows are left over. Any process may remove them.
	return c.sweep(ctx)
}

// GCOptions say what gc keeps.
type GCOptions struct {
	// Before: the files of earlier failures are removed.
	Before time.Time
	// Examples is how many failures of each cluster are kept, the newest ones. Undiagnosed
	// failures are all kept, as nothing is known of them yet.
	Examples int
	// Passed also removes the runs that passed.
	Passed bool
	// DryRun removes nothing.
	DryRun bool
}

// GC removes the files of old failures whose clusters have newer ones. Their rows stay, so
// counts and trends remain right.
func (c *Corpus) GC(ctx context.Context, opts GCOptions) ([]Entry, error) {
	entries, err := c.List(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	claimed, err := c.Claimed(ctx)
	if err != nil {
		return nil, err
	}
	kept := map[string]int{}
	var drop []Entry
	for _, e := range entries {
		if e.Passed {
			if opts.Passed && e.FailedAt.Before(opts.Before) {
				drop = append(drop, e)
			}
			continue
		}
		if e.Diagnosis == nil || claimed[e.ID] {
			continue
		}
		group := e.Diagnosis.Cluster()
		if group == "" {
			group = e.likeness
		}
		kept[group]++
		if kept[group] > opts.Examples && e.FailedAt.Before(opts.Before) {
			drop = append(drop, e)
		}
	}
	if opts.DryRun || len(drop) == 0 {
		return drop, nil
	}
	err = c.change(ctx, func(tx *sql.Tx) error {
		for _, e := range drop {
			if _, err := tx.ExecContext(ctx, "UPDATE entries SET dropped_at = ?, bytes = 0 WHERE id = ? AND dropped_at IS NULL", time.Now().UnixNano(), e.ID); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM files WHERE entry = ?", e.ID); err != nil {
				return err
			}
			if err := note(ctx, tx, e.ID, "dropped", fmt.Sprintf("%d bytes", e.Bytes)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return drop, c.sweep(ctx)
}

// Size returns the space of the corpus on the disk, in bytes, without the database.
func (l *entries) Size(ctx context.Context) (int64, error) {
	var n sql.NullInt64
	if err := l.store.db.QueryRowContext(ctx, "SELECT sum(bytes) FROM entries WHERE dropped_at IS NULL").Scan(&n); err != nil {
		return 0, fmt.Errorf("corpus: %w", err)
	}
	return n.Int64, nil
}

// Missing returns the entries whose files are gone against their rows: a user removed them by
// hand.
func (c *Corpus) Missing(ctx context.Context) ([]Entry, error) {
	entries, err := c.List(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, e := range entries {
		if _, err := os.Stat(c.EntryDir(e.ID)); err != nil {
			list = append(list, e)
		}
	}
	return list, nil
}
