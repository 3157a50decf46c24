package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The names in a corpus's directory.
const (
	databaseName = "corpus.db"
	entriesName  = "entries"
	incomingName = "incoming"
	ownersName   = "owners"
)

// patience is how long a writer waits for the transaction of another. A transaction only writes
// rows and renames one directory.
const patience = 60 * time.Second

// InputError says that the input is wrong: a directory that is no corpus, a file that is
// neither a recording nor a core, an entry that does not exist.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Corpus is an open corpus. Its methods may be called concurrently, and any number of processes
// may have one corpus open.
type Corpus struct {
	// Dir is its directory.
	Dir string

	db    *sql.DB
	owner *owner // nil: opened for reading
}

// Create opens a corpus for changes. It creates the corpus in a directory that is empty or does
// not exist. It removes the unfinished work of processes that have ended.
func Create(ctx context.Context, dir string) (*Corpus, error) {
	if _, err := os.Stat(filepath.Join(dir, databaseName)); errors.Is(err, os.ErrNotExist) {
		if err := emptyDirectory(dir); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"", entriesName, incomingName, ownersName} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
	}
	if err := makePrivate(filepath.Join(dir, databaseName)); err != nil {
		return nil, err
	}
	return open(ctx, dir, true)
}

// makePrivate creates the database's file if there is none. The file contains reports and is
// private to its owner; the journal gets the same mode. A symbolic link is refused. An existing
// file is not opened: closing it would release the locks that this process has on it.
func makePrivate(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return file.Close()
	}
	if !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("corpus: %w", err)
	}
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return fmt.Errorf("corpus: %w", err)
	case !info.Mode().IsRegular():
		return inputf("%s is no regular file", name)
	case info.Mode().Perm()&0o077 != 0:
		os.Chmod(name, 0o600) // not every file system has modes
	}
	return nil
}

// emptyDirectory refuses a directory that holds something else: a mistaken --corpus must not
// write among the user's files. The rest of an interrupted creation is allowed.
func emptyDirectory(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return inputf("corpus %s: %w", dir, err)
	}
	for _, e := range list {
		switch name := e.Name(); {
		case name == databaseName: // of another process that creates it now
			return nil
		case name == entriesName, name == incomingName, name == ownersName, name == databaseName+"-journal", strings.HasPrefix(name, hiddenOwner):
		default:
			return inputf("%s is no corpus, and not empty: it has %s", dir, name)
		}
	}
	return nil
}

// Open opens an existing corpus for reading. Methods that change it fail.
func Open(ctx context.Context, dir string) (*Corpus, error) {
	if err := there(dir); err != nil {
		return nil, err
	}
	return open(ctx, dir, false)
}

// Change opens an existing corpus for changes.
func Change(ctx context.Context, dir string) (*Corpus, error) {
	if err := there(dir); err != nil {
		return nil, err
	}
	return Create(ctx, dir)
}

func there(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, databaseName)); err != nil {
		return inputf("%s is no corpus: %w", dir, err)
	}
	return nil
}

func open(ctx context.Context, dir string, change bool) (*Corpus, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	// Every transaction takes the lock at its begin. A transaction that reads first and then
	// writes would have to be abandoned if another wrote in between. The journal is deleted at
	// each commit: a write-ahead log would need shared memory, which network file systems do
	// not have, and a writable directory.
	mode := "rw"
	if change {
		mode = "rwc"
	}
	query := url.Values{"mode": {mode}, "_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", patience.Milliseconds()), "foreign_keys(1)", "synchronous(FULL)", "journal_mode(DELETE)", "trusted_schema(0)"}}
	name := url.URL{Scheme: "file", Path: filepath.Join(abs, databaseName), RawQuery: query.Encode()}
	if !hasDatabase {
		return nil, errors.New("corpus: this build has no database (tag nocorpus, as for make demo): make build makes one that has")
	}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("corpus %s: %w", dir, err)
	}
	c := &Corpus{Dir: abs, db: db}
	if err := c.begin(ctx, change); err != nil {
		c.Close()
		return nil, fmt.Errorf("corpus %s: %w", dir, err)
	}
	return c, nil
}

func (c *Corpus) begin(ctx context.Context, change bool) error {
	if !change {
		version, err := checkSchema(ctx, c.db)
		if err == nil && version < schemaVersion {
			err = inputf("it was not made to its end, or by an earlier diagnose; what changes it brings it up to date")
		}
		return err
	}
	if err := prepare(ctx, c.db); err != nil {
		return err
	}
	var err error
	if c.owner, err = newOwner(c.Dir); err != nil {
		return err
	}
	return c.sweep(ctx)
}

// Close closes the corpus, and releases this process's claims.
func (c *Corpus) Close() error {
	err := c.db.Close()
	if c.owner != nil {
		c.owner.close()
	}
	return err
}

// change runs f in a transaction. No other transaction writes meanwhile.
func (c *Corpus) change(ctx context.Context, f func(*sql.Tx) error) error {
	if c.owner == nil {
		return errors.New("corpus: it is open for reading")
	}
	tx, err := c.db.BeginTx(ctx, nil)
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

// EntryDir returns the directory of an entry's files.
func (c *Corpus) EntryDir(id string) string { return filepath.Join(c.Dir, entriesName, id) }

// sweep removes the unfinished work of processes that have ended.
func (c *Corpus) sweep(ctx context.Context) error {
	if err := c.sweepIncoming(); err != nil {
		return err
	}
	list, err := os.ReadDir(filepath.Join(c.Dir, entriesName))
	if err != nil {
		return err
	}
	known, err := column(ctx, c.db, "SELECT id FROM entries WHERE dropped_at IS NULL")
	if err != nil {
		return err
	}
	extra := false
	for _, e := range list {
		extra = extra || !known[e.Name()]
	}
	if !extra {
		return nil
	}
	// An entry that is being added has its directory before its row.
	return c.change(ctx, func(tx *sql.Tx) error {
		known, err := column(ctx, tx, "SELECT id FROM entries WHERE dropped_at IS NULL")
		for i := 0; err == nil && i < len(list); i++ {
			if !known[list[i].Name()] {
				err = os.RemoveAll(c.EntryDir(list[i].Name()))
			}
		}
		return err
	})
}

func (c *Corpus) sweepIncoming() error {
	if err := sweepHidden(c.Dir); err != nil {
		return err
	}
	for _, name := range []string{incomingName, ownersName} {
		list, err := os.ReadDir(filepath.Join(c.Dir, name))
		if err != nil {
			return err
		}
		for _, e := range list {
			who, _, _ := cutOwner(e.Name())
			if alive(c.Dir, who) {
				continue
			}
			if err := os.RemoveAll(filepath.Join(c.Dir, name, e.Name())); err != nil {
				return err
			}
		}
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

// syncDirectory syncs the names in a directory.
func syncDirectory(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // some file systems cannot sync directories
		return err
	}
	return nil
}
