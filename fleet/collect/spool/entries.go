package spool

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/image/collected"
)

// Entry is a collected core in the spool.
type Entry struct {
	ID  string
	Dir string
	// Bytes is the size of its files without objects.
	Bytes int64
	kind  Kind
}

const (
	// timeForm is the beginning of an entry's name: names in order are in the order of time.
	timeForm = "20060102T150405.000000000"
	// kindLength is how many characters of the digests a name has.
	kindLength = 12
)

// entryID names an entry by its time and kind.
func entryID(now time.Time, k Kind) string {
	var unique [4]byte
	rand.Read(unique[:]) // which never fails
	short := func(s string) string {
		if s == "" {
			return strings.Repeat("0", kindLength)
		}
		return s[:min(len(s), kindLength)]
	}
	return strings.Join([]string{now.UTC().Format(timeForm), short(k.Program), short(k.Signature), hex.EncodeToString(unique[:])}, "-")
}

// kindOf reads the kind from a name.
func kindOf(id string) (Kind, bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 4 {
		return Kind{}, false
	}
	if strings.Trim(parts[2], "0") == "" {
		parts[2] = "of " + parts[1] // those of a program that cannot be compared are one kind
	}
	return Kind{Program: parts[1], Signature: parts[2]}, true
}

// Entries lists the entries, the oldest first. Other files are left alone.
func (s *Spool) Entries() ([]Entry, error) {
	names, err := os.ReadDir(s.path(entriesName)) // in the order of names
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	var list []Entry
	for _, n := range names {
		kind, ok := kindOf(n.Name())
		if !ok || !n.IsDir() {
			continue
		}
		e := Entry{ID: n.Name(), Dir: s.path(entriesName, n.Name()), kind: kind}
		if e.Bytes, err = coreBytes(e.Dir); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue // removed meanwhile
			}
			return nil, fmt.Errorf("spool: %w", err)
		}
		list = append(list, e)
	}
	return list, nil
}

// coreBytes is the size of an entry's files without objects.
func coreBytes(dir string) (int64, error) {
	var sum int64
	for _, name := range []string{collected.CoreName, collected.FactsName} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

// Remove removes an entry, and objects that only it had. A process that is killed in between leaves
// files in incoming, which the next one removes.
func (s *Spool) Remove(id string) error {
	return s.locked(func() error {
		if err := s.remove(id); err != nil {
			return err
		}
		return s.dropObjects()
	})
}

func (s *Spool) remove(id string) error {
	if _, ok := kindOf(id); !ok || id != filepath.Base(id) {
		return fmt.Errorf("%q is no entry", id)
	}
	gone := s.path(incomingName, id)
	if err := os.Rename(s.path(entriesName, id), gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// dropObjects removes the objects that no entry has: those with one name. An entry that is being
// written has its own link.
func (s *Spool) dropObjects() error {
	return s.eachObject(func(path string, info *unix.Stat_t) error {
		if info.Nlink > 1 {
			return nil
		}
		return os.Remove(path)
	})
}

func (s *Spool) eachObject(f func(path string, info *unix.Stat_t) error) error {
	names, err := os.ReadDir(s.path(objectsName))
	if err != nil {
		return err
	}
	for _, n := range names {
		var info unix.Stat_t
		path := s.path(objectsName, n.Name())
		if err := unix.Lstat(path, &info); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := f(path, &info); err != nil {
			return err
		}
	}
	return nil
}

func (s *Spool) objectBytes() (sum int64, err error) {
	err = s.eachObject(func(_ string, info *unix.Stat_t) error {
		sum += info.Size
		return nil
	})
	return sum, err
}

// removeDead removes what killed processes left in incoming.
func (s *Spool) removeDead() error {
	names, err := os.ReadDir(s.path(incomingName))
	if err != nil {
		return err
	}
	for _, n := range names {
		path := s.path(incomingName, n.Name())
		f, err := os.Open(path)
		if err != nil {
			continue // its writer has just renamed or removed it
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.RemoveAll(path)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return s.dropObjects()
}

// room is what makeRoom weighs, in bytes.
type room struct {
	list   []Entry
	newest map[string]string // entries by signature
	// program and all are the sizes of the program's cores and of all, those that must stay among
	// them.
	program, all, programStays, allStay int64
}

// makeRoom removes the oldest entries until the limits allow for the staged one. The newest of
// each kind stays. If that is not enough, none is removed.
func (s *Spool) makeRoom(g *Stage) error {
	mine, ok := kindOf(g.id)
	if !ok {
		return fmt.Errorf("%q is no name of an entry", g.id)
	}
	r, err := s.weigh(g, mine)
	if err != nil {
		return err
	}
	if r.programStays > s.Limits.ProgramBytes || r.allStay > s.Limits.TotalBytes {
		return ErrFull
	}
	for i := range r.list {
		e := &r.list[i]
		over, err := s.over(r)
		if err != nil || !over.program && !over.all {
			return err
		}
		same := e.kind.Program == mine.Program
		if r.newest[e.kind.Signature] == e.ID || !over.all && !same {
			continue
		}
		if err := errors.Join(s.remove(e.ID), s.dropObjects()); err != nil {
			return err
		}
		if r.all -= e.Bytes; same {
			r.program -= e.Bytes
		}
	}
	over, err := s.over(r)
	if err == nil && (over.program || over.all) {
		err = ErrFull
	}
	return err
}

// weigh adds up the spool with the staged entry.
func (s *Spool) weigh(g *Stage, mine Kind) (*room, error) {
	need, err := coreBytes(g.dir)
	if err != nil {
		return nil, err
	}
	list, err := s.Entries()
	if err != nil {
		return nil, err
	}
	r := &room{list: list, newest: map[string]string{mine.Signature: g.id}, program: need, all: need, programStays: need, allStay: need}
	for i := len(list) - 1; i >= 0; i-- {
		e := &list[i]
		stays := r.newest[e.kind.Signature] == ""
		if stays {
			r.newest[e.kind.Signature] = e.ID
			r.allStay += e.Bytes
		}
		r.all += e.Bytes
		if e.kind.Program == mine.Program {
			r.program += e.Bytes
			if stays {
				r.programStays += e.Bytes
			}
		}
	}
	return r, nil
}

// exceeded says which limits are exceeded.
type exceeded struct{ program, all bool }

func (s *Spool) over(r *room) (exceeded, error) {
	objects, err := s.objectBytes()
	return exceeded{r.program > s.Limits.ProgramBytes, r.all+objects > s.Limits.TotalBytes}, err
}
