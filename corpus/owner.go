package corpus

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// owner is a process that has a corpus open for changes: a file that is locked as long as it
// lives.
type owner struct {
	name   string
	path   string
	file   *os.File
	stages atomic.Int64
}

// hiddenOwner begins the name of a file that is not locked yet.
const hiddenOwner = ".owner-"

// sweepHidden removes the hidden files of processes that ended before the rename. After an hour
// that is almost certain. A slower process fails at the rename, without harm.
func sweepHidden(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), hiddenOwner) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return nil
}

// newOwner creates the file under a hidden name, since other processes must not see it
// unlocked.
func newOwner(dir string) (*owner, error) {
	var random [12]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	name := hex.EncodeToString(random[:])
	file, err := os.CreateTemp(dir, hiddenOwner+"*")
	if err != nil {
		return nil, err
	}
	hidden := file.Name()
	path := filepath.Join(dir, ownersName, name)
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		os.Remove(hidden)
		file.Close()
		return nil, fmt.Errorf("the lock of this process: %w", err)
	}
	return &owner{name: name, path: path, file: file}, nil
}

func (o *owner) close() {
	os.Remove(o.path)
	o.file.Close()
}

// stage returns a new name in incoming that belongs to this process.
func (o *owner) stage() string { return fmt.Sprintf("%s-%d", o.name, o.stages.Add(1)) }

// cutOwner returns the owner of a name in incoming or owners.
func cutOwner(name string) (owner, rest string, found bool) { return strings.Cut(name, "-") }

// alive reports whether an owner's process lives. If that cannot be determined, it counts
// as alive: to take over from a process that works would do things twice.
func alive(dir, name string) bool {
	f, err := os.Open(filepath.Join(dir, ownersName, filepath.Base(name)))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}
