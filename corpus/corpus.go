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

// IsDamaged reports whether an error says that the corpus's database is damaged. Any method may
// find that.
func IsDamaged(err error) bool { return databaseDamaged(err) }

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Corpus is an open corpus. Its methods may be called concurrently, and any number of processes
// may have one corpus open.
type Corpus struct {
	// Dir is its directory.
	Dir string

	*store
	folders
	entries
	diagnoses
	clusters
	reported
}

func newCorpus(s *store) *Corpus {
	c := &Corpus{Dir: s.dir, store: s, folders: folders{s}, entries: entries{s}, reported: reported{s}}
	c.diagnoses = diagnoses{s, &c.entries}
	c.clusters = clusters{s, &c.entries, &c.diagnoses}
	return c
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
	c := newCorpus(&store{dir: abs, db: db, writer: make(chan struct{}, 1)})
	if err := c.begin(ctx, change); err != nil {
		c.Close()
		if databaseDamaged(err) {
			err = inputf("%s is damaged, or no database: %w", databaseName, err)
		}
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
