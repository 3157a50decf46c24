package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what a spool keeps.
type Limits struct {
	// Window is how long a core that looks like one that was kept is counted and not kept.
	Window time.Duration
	// ProgramRate and TotalRate are how many cores are kept in an hour, of one program and in all.
	ProgramRate, TotalRate int
	// ProgramBytes bounds the cores of one program, TotalBytes the whole spool.
	ProgramBytes, TotalBytes int64
	// EntryBytes bounds one core, compressed, and its objects together.
	EntryBytes int64
	// FreeBytes is how much of the disk stays free for others.
	FreeBytes int64
	// Handlers bounds the cores that are written at the same time.
	Handlers int
}

// DefaultLimits are those of an installation that names no others.
var DefaultLimits = Limits{
	Window: time.Hour, ProgramRate: 6, TotalRate: 60,
	ProgramBytes: 2 << 30, TotalBytes: 10 << 30, EntryBytes: 1 << 30, FreeBytes: 1 << 30,
	Handlers: 2,
}

// Check says which limit makes no sense.
func (l *Limits) Check() error {
	switch {
	case l.Window < 0:
		return fmt.Errorf("a window of %v", l.Window)
	case l.ProgramRate < 1 || l.TotalRate < 1:
		return fmt.Errorf("rates of %d and %d an hour", l.ProgramRate, l.TotalRate)
	case l.ProgramBytes < 1 || l.TotalBytes < 1 || l.EntryBytes < 1 || l.FreeBytes < 0:
		return errors.New("a size below one byte")
	case l.Handlers < 1 || l.Handlers > mostHandlers:
		return fmt.Errorf("%d handlers, and 1 to %d are possible", l.Handlers, mostHandlers)
	}
	return nil
}

const (
	entriesName  = "entries"
	objectsName  = "objects"
	incomingName = "incoming"
	slotsName    = "slots"
	lockName     = "lock"
	stateName    = "state.json"
	mostHandlers = 64
)

// Spool is a spool's directory. It may be used by several processes.
type Spool struct {
	Dir    string
	Limits Limits
}

// Open opens a spool and makes it if there is none. Its directories are those of its owner alone.
func Open(dir string, limits Limits) (*Spool, error) {
	if err := limits.Check(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for _, name := range []string{"", entriesName, objectsName, incomingName, slotsName} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
	}
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil {
		return nil, fmt.Errorf("spool: %s: %w", dir, err)
	}
	if int(info.Uid) != os.Geteuid() || info.Mode&0o077 != 0 || info.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, fmt.Errorf("spool: %s is not a directory of its user alone (owner %d, mode %#o)", dir, info.Uid, info.Mode&0o777)
	}
	return &Spool{Dir: dir, Limits: limits}, nil
}

func (s *Spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

// Slot takes the right to write a core. false: as many as allowed are being written. release gives it
// back; so does the end of the process.
func (s *Spool) Slot() (release func(), free bool, err error) {
	for i := range s.Limits.Handlers {
		f, err := lockFile(s.path(slotsName, strconv.Itoa(i)), unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, true, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, false, fmt.Errorf("spool: %w", err)
		}
	}
	return nil, false, nil
}

// lockFile opens a file that is locked until it is closed. how is 0 or LOCK_NB.
func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// locked runs f while no other process runs such a function.
func (s *Spool) locked(f func() error) error {
	lock, err := lockFile(s.path(lockName), 0)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	defer lock.Close()
	if err := f(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// syncDirectory has the kernel write a directory's entries to the disk.
func syncDirectory(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
