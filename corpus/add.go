package corpus

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image/collected"
	"diagnose/internal/wording"
	"diagnose/replay/record"
)

// AddOptions say how to add a failure.
type AddOptions struct {
	// Labels are set on the entry, even if it existed.
	Labels map[string]string
	// Move removes the original once the copy is safe.
	Move bool
	// Bytes is the maximum size of the entry, holes included; 0 is 64 GiB.
	Bytes int64
}

// Added is the result of an addition.
type Added struct {
	// ID names the entry. Existed says that it already existed.
	ID      string `json:"id"`
	Existed bool   `json:"existed"`
}

// The kinds of entry.
const (
	KindRecording = "recording"
	KindCore      = "core"
)

// coreName is the file of an entry that is a core.
const coreName = "core"

// Add copies a recording's directory, a core, or the directory of a collected core, into the corpus. It
// fails with an *InputError if it is none of them.
func (c *Corpus) Add(ctx context.Context, name string, opts AddOptions) (Added, error) {
	if c.owner == nil {
		return Added{}, errors.New("corpus: it is open for reading")
	}
	if err := checkLabels(opts.Labels); err != nil {
		return Added{}, err
	}
	a, err := c.addition(ctx, name, opts)
	if err != nil {
		return Added{}, fmt.Errorf("%s: %w", name, err)
	}
	if opts.Move {
		if err := os.RemoveAll(name); err != nil {
			return a, fmt.Errorf("it is in the corpus now, and could not be removed where it was: %w", err)
		}
	}
	return a, nil
}

func (c *Corpus) addition(ctx context.Context, name string, opts AddOptions) (Added, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Added{}, &InputError{err}
	}
	source, err := filepath.Abs(name)
	if err != nil {
		return Added{}, err
	}
	stage, err := c.newStage()
	if err != nil {
		return Added{}, err
	}
	defer stage.discard()
	k := newCopier(ctx, opts.Bytes)
	e := Entry{Kind: KindCore, Source: source, AddedAt: time.Now(), Labels: opts.Labels}
	switch {
	case info.IsDir() && collected.Is(name):
		err = stage.collected(name, k, &e)
	case info.IsDir():
		e.Kind = KindRecording
		err = stage.recording(name, k, &e)
	default:
		err = stage.core(name, k, &e)
	}
	if err != nil {
		return Added{}, explain(err)
	}
	e.Bytes = k.onDisk
	return c.keep(ctx, stage, &e, k.files)
}

// explain adds to the error of a full disk that it is the corpus's disk.
func explain(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("there is no room in the corpus, and nothing was added: %w", err)
	}
	return err
}

// stage is a directory of incoming in which an entry is assembled.
type stage struct {
	dir  string
	root *os.Root
}

func (s *stage) discard() {
	s.root.Close()
	os.RemoveAll(s.dir)
}

func (s *stage) recording(name string, k *copier, e *Entry) error {
	rec, err := record.Open(name)
	if err != nil {
		return &InputError{err}
	}
	live, unfinished := rec.Live(), rec.Manifest.Outcome.Kind == record.OutcomeRunning
	rec.Close()
	if live {
		return inputf("it is still being recorded")
	}
	from, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := checkCores(from, ".", unfinished, 0); err != nil {
		return err
	}
	if err := k.tree(from, s.root, ".", 0); err != nil {
		return err
	}
	return describe(s.dir, e)
}

// checkCores refuses a recording whose core, or that of a child, is none. The recorder of an
// unfinished one may have ended before it wrote the core's header.
func checkCores(from *os.Root, dir string, unfinished bool, depth int) error {
	name := path.Join(dir, record.CoreName)
	// Lstat: a file that is not regular must not be opened, it may be a pipe.
	switch info, err := from.Lstat(name); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return &InputError{err}
	case !info.Mode().IsRegular():
		return inputf("%s is not a regular file", name)
	case info.Size() == 0 && unfinished:
	default:
		if err := checkCore(from, name); err != nil {
			return err
		}
	}
	children, err := fs.ReadDir(from.FS(), path.Join(dir, record.ChildrenName))
	if err != nil || depth > mostDepth {
		return nil // tree reports it
	}
	for _, child := range children {
		if child.IsDir() {
			if err := checkCores(from, path.Join(dir, record.ChildrenName, child.Name()), unfinished, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCore(from *os.Root, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return &InputError{err}
	}
	defer in.Close()
	head, err := headOf(in)
	if err == nil && !isELFCore(head) {
		err = inputf("%s is no ELF core", name)
	}
	return err
}

// describe sets the fields of an entry from its recording.
func describe(dir string, e *Entry) error {
	rec, err := record.Open(dir)
	if err != nil {
		return &InputError{err}
	}
	defer rec.Close()
	culprit, err := failing(rec)
	if err != nil {
		return err
	}
	failed := rec
	if culprit != "." {
		if failed, err = record.Open(filepath.Join(dir, filepath.FromSlash(culprit))); err != nil {
			return &InputError{err}
		}
		defer failed.Close()
	}
	m := failed.Manifest
	e.Culprit, e.Program, e.BuildID = culprit, strings.ToValidUTF8(string(m.Program.Path), "\uFFFD"), m.Program.BuildID
	e.Outcome, e.Ended = m.Outcome.String(), ended(&m.Outcome)
	e.Passed = e.Ended == "passed"
	e.FailedAt = m.Times.Started
	if m.Times.Ended != nil {
		e.FailedAt = *m.Times.Ended
	}
	e.likeness = strings.Join([]string{path.Base(e.Program), e.Ended, place(&m.Outcome)}, "\n")
	return nil
}

// failing returns the recording to diagnose: that of the process or one of its children. If
// nothing failed it is the recording itself.
func failing(rec *record.Recording) (string, error) {
	family := record.ReadFamily(rec)
	if family.Unread != nil {
		return "", &InputError{family.Unread}
	}
	if p := &family.Processes[max(family.Blamed(), 0)]; p.Dir != "" {
		return p.Dir, nil
	}
	return ".", nil
}

// ended describes in one word how a run ended.
func ended(o *record.Outcome) string {
	switch {
	case o.Kind == record.OutcomeSignal:
		return strings.ReplaceAll(wording.Signal(o.Signal), " ", "-")
	case o.Kind == record.OutcomeExit:
		return fmt.Sprintf("exit-%d", o.Status)
	case o.Kind == record.OutcomePassed && o.Evidence != "":
		return "heap"
	case o.Declared != nil:
		return "failed-" + string(o.Declared.Rule)
	}
	return string(o.Kind)
}

func place(o *record.Outcome) string {
	if o.PC == nil {
		return ""
	}
	return o.PC.String()
}

func (s *stage) core(name string, k *copier, e *Entry) error {
	in, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return &InputError{err}
	}
	defer in.Close()
	if err := isCore(in); err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	e.FailedAt, e.Outcome = info.ModTime(), "core"
	e.likeness = strings.Join([]string{filepath.Base(name), "core"}, "\n")
	return k.copy(in, s.root, coreName)
}

// compressed are the magic numbers of the formats that 'diagnose crash' unpacks: zst, lz4, gz,
// xz.
var compressed = []string{"\x28\xb5\x2f\xfd", "\x04\x22\x4d\x18", "\x1f\x8b", "\xfd7zXZ\x00"}

// isCore refuses a file that cannot be a core. Whether the core can be read shows in its
// diagnosis.
func isCore(in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return inputf("it is neither a recording nor a file")
	}
	head, err := headOf(in)
	if err != nil {
		return err
	}
	if isELFCore(head) {
		return nil
	}
	for _, magic := range compressed {
		if bytes.HasPrefix(head, []byte(magic)) {
			return nil
		}
	}
	return inputf("it is neither a recording nor a core")
}

// headOf is the begin of a file, up to the type in an ELF header.
func headOf(in *os.File) ([]byte, error) {
	var head [18]byte
	n, err := in.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head[:n], nil
}

func isELFCore(head []byte) bool {
	const typeOffset, etCore = 16, 4 // e_type of the ELF header
	return len(head) == typeOffset+2 && bytes.HasPrefix(head, []byte("\x7fELF")) && binary.LittleEndian.Uint16(head[typeOffset:]) == etCore
}

// keep moves the staged files to their place, in the transaction that writes the rows.
func (c *Corpus) keep(ctx context.Context, s *stage, e *Entry, files []file) (Added, error) {
	e.ID = identity(e.Kind, files)
	a := Added{ID: e.ID}
	if err := syncRoot(s.root, "."); err != nil {
		return a, explain(err)
	}
	err := c.change(ctx, func(tx *sql.Tx) error {
		var dropped sql.NullInt64
		err := tx.QueryRowContext(ctx, "SELECT dropped_at FROM entries WHERE id = ?", e.ID).Scan(&dropped)
		if a.Existed = err == nil && !dropped.Valid; a.Existed {
			return setLabels(ctx, tx, e.ID, e.Labels)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		// Without rows the directory is the rest of an interrupted addition.
		if err := os.RemoveAll(c.EntryDir(e.ID)); err != nil {
			return err
		}
		if err := insert(ctx, tx, e, files); err != nil {
			return err
		}
		if err := os.Rename(s.dir, c.EntryDir(e.ID)); err != nil {
			return err
		}
		return syncDirectory(filepath.Join(c.Dir, entriesName))
	})
	if err != nil {
		return a, explain(err)
	}
	return a, nil
}

func insert(ctx context.Context, tx *sql.Tx, e *Entry, files []file) error {
	// The diagnoses of a dropped entry stay.
	_, err := tx.ExecContext(ctx, `INSERT INTO entries (id, kind, program, build_id, outcome, ended, likeness, culprit, passed, failed_at, added_at, bytes, source, imported)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET dropped_at = NULL, bytes = excluded.bytes`,
		e.ID, e.Kind, e.Program, e.BuildID, e.Outcome, e.Ended, e.likeness, e.Culprit, e.Passed, e.FailedAt.UnixNano(), e.AddedAt.UnixNano(), e.Bytes, e.Source, e.Imported)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO files (entry, name, size, sha256) VALUES (?, ?, ?, ?)", e.ID, f.Name, f.Size, f.SHA256); err != nil {
			return err
		}
	}
	if err := setLabels(ctx, tx, e.ID, e.Labels); err != nil {
		return err
	}
	return note(ctx, tx, e.ID, "added", e.Source)
}
