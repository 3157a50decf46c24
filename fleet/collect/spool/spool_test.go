package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/image/collected"
)

// limits are small ones, without a part of the disk that stays free.
var limits = Limits{Window: time.Hour, ProgramRate: 3, TotalRate: 5, ProgramBytes: 1 << 20, TotalBytes: 4 << 20, EntryBytes: 1 << 20, Handlers: 2}

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, l Limits) *Spool {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "spool"), l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kind is a kind with digests of some length.
func kind(program, signature int) Kind {
	return Kind{Program: fmt.Sprintf("%016xp", program), Signature: fmt.Sprintf("%016xs", signature)}
}

// put keeps a core of a size with an object, which has been admitted or not.
func put(t *testing.T, s *Spool, k Kind, now time.Time, size int, object string) error {
	t.Helper()
	g, err := s.NewStage(k, now)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Discard()
	f, err := g.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := g.Limited(f).Write(bytes.Repeat([]byte("x"), size)); err != nil {
		return err
	}
	kept, err := g.Object("00ff", bytes.NewReader([]byte(object)), int64(len(object)))
	if err != nil {
		return err
	}
	kept.Close()
	_, err = g.Commit(&collected.Facts{Version: collected.Version, Program: "/bin/prog"}, now)
	return err
}

func TestAdmit(t *testing.T) {
	s := open(t, limits)
	now := start
	admit := func(k Kind, want Refusal) {
		t.Helper()
		got, err := s.Admit(k, "/bin/prog", now)
		if err != nil || got != want {
			t.Errorf("%q, %v, and want %q", got, err, want)
		}
	}
	admit(kind(1, 1), "")
	admit(kind(1, 1), Same) // it is being written
	if err := s.Refuse(kind(1, 1), "/bin/prog", Failed, now); err != nil {
		t.Fatal(err)
	}
	admit(kind(1, 1), "") // the first one failed
	if err := put(t, s, kind(1, 1), now, 100, "object"); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		admit(kind(1, 1), Same)
	}
	admit(kind(1, 2), "")
	admit(kind(1, 3), ProgramRate)
	admit(Kind{Program: kind(1, 1).Program}, ProgramRate)
	admit(kind(2, 4), "")
	admit(kind(3, 5), "")
	admit(kind(4, 6), TotalRate)
	now = now.Add(20 * time.Minute) // one token of the program, and one and two thirds of all
	admit(kind(1, 3), "")
	admit(kind(1, 7), ProgramRate)
	now = now.Add(time.Hour)
	admit(kind(1, 1), "") // the window is over
	status, err := s.Status()
	if err != nil || status.Refused[Same] != 1001 || status.Kept != 1 || len(status.Entries) != 1 || len(status.Programs) != 4 {
		t.Errorf("%+v, %v", status, err)
	}
	// A clock that is set back neither fills the buckets nor blocks a kind.
	now = start.Add(-1000 * time.Hour)
	admit(kind(4, 1), "")
}

// TestUnreadableState: counters begin again.
func TestUnreadableState(t *testing.T) {
	for _, text := range []string{"", "{", `{"programs":{"a":null},"signatures":{"b":null}}`, `{"total":{"tokens":1e308}}`} {
		s := open(t, limits)
		if err := os.WriteFile(s.path(stateName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Admit(kind(1, 1), "/bin/prog", start); got != "" || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestBoundedState: a program that changes its name does not fill the state.
func TestBoundedState(t *testing.T) {
	s := open(t, limits)
	for i := range mostPrograms + 20 {
		if _, err := s.Admit(kind(i, i), "/bin/prog", start.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if st := s.read(); len(st.Programs) != mostPrograms || st.Programs[kind(0, 0).Program] != nil {
		t.Errorf("%d programs", len(st.Programs))
	}
}

// ids are the kinds of the entries, the oldest first.
func ids(t *testing.T, s *Spool) (list []string) {
	t.Helper()
	entries, err := s.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.kind.Program[11:]+"/"+e.kind.Signature[11:])
	}
	return list
}

// short is a kind as a name of an entry has it.
func short(program, signature string) Kind {
	return Kind{Program: fmt.Sprintf("%012s", program), Signature: fmt.Sprintf("%012s", signature)}
}

// TestRoom: the oldest go first, the newest of each kind stays, and what does not fit removes nothing.
func TestRoom(t *testing.T) {
	s := open(t, limits)
	const third = 400 << 10
	now := start
	try := func(k Kind, size int, want error) {
		t.Helper()
		now = now.Add(time.Second)
		if err := put(t, s, k, now, size, "object"); !errors.Is(err, want) {
			t.Errorf("%v, and want %v", err, want)
		}
	}
	try(short("a", "1"), third, nil)
	try(short("a", "2"), third, nil)
	try(short("a", "1"), third, nil) // the first one goes
	if got := ids(t, s); !slices.Equal(got, []string{"a/2", "a/1"}) {
		t.Error(got)
	}
	try(short("a", "3"), third, ErrFull)
	try(short("b", "3"), third, nil)
	try(short("a", "2"), third, nil)
	if got := ids(t, s); !slices.Equal(got, []string{"a/1", "b/3", "a/2"}) {
		t.Error(got)
	}
	try(short("c", "9"), 2<<20, ErrTooLarge)
	// In all: objects count as well.
	s.Limits.TotalBytes = 4*third + 10<<10
	try(short("b", "4"), third, nil)
	try(short("c", "5"), 100<<10, ErrFull)
	try(short("b", "3"), third, nil)
	if got := ids(t, s); !slices.Equal(got, []string{"a/1", "a/2", "b/4", "b/3"}) {
		t.Error(got)
	}
}

// TestObjects: an object is kept once, and goes with its last entry.
func TestObjects(t *testing.T) {
	s := open(t, limits)
	for i, text := range []string{"one", "one", "other"} {
		if err := put(t, s, kind(1, i), start.Add(time.Duration(i)*time.Second), 10, text); err != nil {
			t.Fatal(err)
		}
	}
	objects := func(want int) {
		t.Helper()
		list, err := os.ReadDir(s.path(objectsName))
		if err != nil || len(list) != want {
			t.Errorf("%v, %v, and want %d", list, err, want)
		}
	}
	objects(2)
	entries, err := s.Entries()
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	for i, want := range []int{2, 1, 0} {
		if err := s.Remove(entries[i].ID); err != nil {
			t.Fatal(err)
		}
		objects(want)
	}
	for _, id := range []string{"..", "../entries/" + entries[0].ID, "x", entries[0].ID} {
		if s.Remove(id) == nil {
			t.Errorf("%q was removed", id)
		}
	}
}

// TestSlots: the slots are taken once each.
func TestSlots(t *testing.T) {
	s := open(t, limits)
	var all []func()
	for i := range 3 {
		release, free, err := s.Slot()
		if err != nil || free != (i < 2) {
			t.Errorf("%d: %v, %v", i, free, err)
		}
		all = append(all, release)
	}
	all[1]()
	if _, free, err := s.Slot(); !free || err != nil {
		t.Error(free, err)
	}
}

// TestPrivate: a spool that others can read is refused.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, limits); err == nil {
		t.Error("it was opened")
	}
	s := open(t, limits)
	if err := put(t, s, kind(1, 1), start, 10, "object"); err != nil {
		t.Fatal(err)
	}
	filepath.Walk(s.Dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
}
