package work

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// workshopPrefix begins the name of a worker's directory.
const workshopPrefix = "diagnose-worker-"

// Workshop is the directory of one worker: others cannot list it, and a user of an analysis can
// reach his part of it. It is locked while the worker lives.
type Workshop struct {
	Dir  string
	lock *os.File
}

// OpenWorkshop makes a workshop in a directory, and removes those of workers that were killed.
func OpenWorkshop(parent string) (*Workshop, error) {
	if err := sweep(parent); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	dir, err := os.MkdirTemp(parent, workshopPrefix)
	if err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	w := &Workshop{Dir: dir}
	if w.lock, err = os.Open(dir); err == nil {
		err = unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("work: %w", err)
	}
	return w, nil
}

// Close removes the directory.
func (w *Workshop) Close() {
	os.RemoveAll(w.Dir)
	w.lock.Close()
}

// sweep removes the workshops that are not locked and that are this user's. One that is being
// made has other permissions until it is locked.
func sweep(parent string) error {
	list, err := filepath.Glob(filepath.Join(parent, workshopPrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range list {
		f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // another user's, or gone
		}
		var s unix.Stat_t
		if unix.Fstat(int(f.Fd()), &s) == nil && int(s.Uid) == os.Geteuid() && s.Mode&0o777 == 0o711 && unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = os.RemoveAll(dir)
		}
		f.Close()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
