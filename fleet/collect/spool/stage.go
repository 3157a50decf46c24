package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image/collected"
)

// ErrTooLarge says that a core, or an object, is larger than a limit allows.
var ErrTooLarge = errors.New("it is larger than the limit of an entry")

// ErrFull says that the spool has no room that could be made.
var ErrFull = errors.New("the spool is full of cores of which each is the newest of its kind")

// Stage is an entry that is being written. It is for one goroutine.
type Stage struct {
	spool *Spool
	kind  Kind
	id    string
	dir   string
	lock  *os.File
	left  int64 // bytes that it may still take
	since int64 // bytes since the free space of the disk was looked at
}

// NewStage begins an entry, and removes what others that were killed left.
func (s *Spool) NewStage(k Kind, now time.Time) (*Stage, error) {
	g := &Stage{spool: s, kind: k, left: s.Limits.EntryBytes}
	err := s.locked(func() error {
		if err := s.removeDead(); err != nil {
			return err
		}
		g.id = entryID(now, k)
		g.dir = s.path(incomingName, g.id)
		if err := os.Mkdir(g.dir, 0o700); err != nil {
			return err
		}
		var err error
		if g.lock, err = os.Open(g.dir); err != nil {
			return err
		}
		if err := unix.Flock(int(g.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return err
		}
		return os.Mkdir(filepath.Join(g.dir, collected.ObjectsName), 0o700)
	})
	if err != nil {
		g.Discard()
		return nil, err
	}
	return g, nil
}

// Discard removes the entry, unless it was committed. It may be called more than once.
func (g *Stage) Discard() {
	if g.lock == nil {
		return
	}
	os.RemoveAll(g.dir)
	g.lock.Close()
	g.lock = nil
}

// Create makes the file of the core.
func (g *Stage) Create() (*os.File, error) {
	return os.OpenFile(filepath.Join(g.dir, collected.CoreName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Limited returns a writer of a file that fails with ErrTooLarge or ENOSPC at the limits.
func (g *Stage) Limited(w io.Writer) io.Writer { return &limited{stage: g, w: w} }

type limited struct {
	stage *Stage
	w     io.Writer
}

func (l *limited) Write(b []byte) (int, error) {
	if err := l.stage.spend(int64(len(b))); err != nil {
		return 0, err
	}
	return l.w.Write(b)
}

// spend counts bytes that are about to be written.
func (g *Stage) spend(n int64) error {
	const looked = 8 << 20
	if g.left -= n; g.left < 0 {
		return ErrTooLarge
	}
	if g.since += n; g.since < looked {
		return nil
	}
	g.since = 0
	free, err := g.spool.free()
	if err == nil && free < g.spool.Limits.FreeBytes {
		err = fmt.Errorf("%s: less than %d bytes are free: %w", g.spool.Dir, g.spool.Limits.FreeBytes, unix.ENOSPC)
	}
	return err
}

// free is the free space of the spool's disk, in bytes.
func (s *Spool) free() (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.Dir, &fs); err != nil {
		return 0, fmt.Errorf("spool: statfs %s: %w", s.Dir, err)
	}
	return int64(min(fs.Bavail, 1<<50)) * fs.Bsize, nil
}

// Object keeps a file under a name in the entry, and returns the kept file and its size. A file that
// the spool has is not copied.
func (g *Stage) Object(name string, from io.ReaderAt, size int64) (*os.File, error) {
	if size > g.left {
		return nil, ErrTooLarge
	}
	digest, err := digestOf(io.NewSectionReader(from, 0, size), io.Discard)
	if err != nil {
		return nil, err
	}
	store, path := g.spool.path(objectsName, digest), filepath.Join(g.dir, collected.ObjectsName, name)
	err = os.Link(store, path)
	if errors.Is(err, os.ErrNotExist) {
		if err = g.copy(path, from, size, digest); err == nil {
			err = os.Link(path, store)
		}
		if errors.Is(err, os.ErrExist) {
			err = nil // another process was faster: the copy stays, this once
		}
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// copy copies an object, and checks that it is the one of the digest: its file may change.
func (g *Stage) copy(path string, from io.ReaderAt, size int64, digest string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	got, err := digestOf(io.NewSectionReader(from, 0, size), g.Limited(out))
	if err == nil && got != digest {
		err = errors.New("it was changed while it was read")
	}
	if err == nil {
		err = out.Sync()
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}

// digestOf copies a stream and returns its SHA-256 digest in hexadecimal.
func digestOf(in io.Reader, out io.Writer) (string, error) {
	sum := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(out, sum), struct{ io.Reader }{in}, make([]byte, 256<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Commit makes the entry one of the spool, with these facts, and removes older ones if the limits of
// the disk need it. It returns the entry's directory.
func (g *Stage) Commit(facts *collected.Facts, now time.Time) (string, error) {
	text, err := json.MarshalIndent(facts, "", "\t")
	if err != nil {
		return "", err
	}
	if err := writeSynced(filepath.Join(g.dir, collected.FactsName), text); err != nil {
		return "", err
	}
	for _, dir := range []string{filepath.Join(g.dir, collected.ObjectsName), g.dir, g.spool.path(objectsName)} {
		if err := syncDirectory(dir); err != nil {
			return "", err
		}
	}
	place := g.spool.path(entriesName, g.id)
	err = g.spool.change(func(st *state) error {
		if err := g.spool.makeRoom(g); err != nil {
			return err
		}
		if err := os.Rename(g.dir, place); err != nil {
			return err
		}
		if v := st.Signatures[g.kind.Signature]; v != nil {
			v.Kept, v.Pending = now, time.Time{}
		}
		st.program(g.kind, facts.Program, now).Kept++
		st.Kept++
		return syncDirectory(g.spool.path(entriesName))
	})
	if err != nil {
		return "", err
	}
	g.lock.Close()
	g.lock = nil
	return place, nil
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}
