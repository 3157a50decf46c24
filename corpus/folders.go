package corpus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folders are the directories of the entries, and of unfinished work.
type folders struct{ store *store }

// EntryDir returns the directory of an entry's files.
func (f *folders) EntryDir(id string) string { return filepath.Join(f.store.dir, entriesName, id) }

// sweep removes the unfinished work of processes that have ended.
func (f *folders) sweep(ctx context.Context) error {
	if err := f.sweepIncoming(); err != nil {
		return err
	}
	list, err := os.ReadDir(filepath.Join(f.store.dir, entriesName))
	if err != nil {
		return err
	}
	known, err := column(ctx, f.store.db, "SELECT id FROM entries WHERE dropped_at IS NULL")
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
	return f.store.change(ctx, func(tx *sql.Tx) error {
		known, err := column(ctx, tx, "SELECT id FROM entries WHERE dropped_at IS NULL")
		for i := 0; err == nil && i < len(list); i++ {
			if !known[list[i].Name()] {
				err = os.RemoveAll(f.EntryDir(list[i].Name()))
			}
		}
		return err
	})
}

func (f *folders) sweepIncoming() error {
	if err := sweepHidden(f.store.dir); err != nil {
		return err
	}
	for _, name := range []string{incomingName, ownersName} {
		list, err := os.ReadDir(filepath.Join(f.store.dir, name))
		if err != nil {
			return err
		}
		for _, e := range list {
			who, _, _ := cutOwner(e.Name())
			if alive(f.store.dir, who) {
				continue
			}
			if err := os.RemoveAll(filepath.Join(f.store.dir, name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *folders) newStage() (*stage, error) {
	dir := filepath.Join(f.store.dir, incomingName, f.store.owner.stage())
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, explain(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &stage{dir, root}, nil
}

// Scratch makes a directory for this process's work on the corpus. discard removes it, or
// another process after this one has ended.
func (f *folders) Scratch() (dir string, discard func(), err error) {
	if f.store.owner == nil {
		return "", nil, errors.New("corpus: it is open for reading")
	}
	s, err := f.newStage()
	if err != nil {
		return "", nil, fmt.Errorf("corpus: %w", err)
	}
	return s.dir, s.discard, nil
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
