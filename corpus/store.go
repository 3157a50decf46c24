package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// store is the database, and the right to change it.
type store struct {
	dir   string // of the corpus
	db    *sql.DB
	owner *owner // nil: opened for reading
	// writer is held by the change of this process. SQLite's own wait for a lock is not fair, and of
	// hundreds some would wait too long.
	writer chan struct{}
}

// change runs f in a transaction. No other transaction writes meanwhile.
func (s *store) change(ctx context.Context, f func(*sql.Tx) error) error {
	if s.owner == nil {
		return errors.New("corpus: it is open for reading")
	}
	select {
	case s.writer <- struct{}{}:
		defer func() { <-s.writer }()
	case <-ctx.Done():
		return fmt.Errorf("corpus: %w", ctx.Err())
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("corpus: %w", err)
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("corpus: %w", err)
	}
	return nil
}

// column returns the values of a query's only column.
func column(ctx context.Context, db querier, query string, args ...any) (map[string]bool, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	set := map[string]bool{}
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		set[s] = true
	}
	return set, rows.Err()
}

// note writes a line of the history.
func note(ctx context.Context, tx *sql.Tx, id, what, detail string) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO history (at, entry, what, detail) VALUES (?, ?, ?, ?)", time.Now().UnixNano(), id, what, detail)
	return err
}
