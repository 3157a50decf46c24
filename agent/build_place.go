package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// placeError says why a directory cannot keep the library.
type placeError struct {
	dir string
	err error
}

func (e *placeError) Error() string { return fmt.Sprintf("%s cannot keep it: %v", e.dir, e.err) }
func (e *placeError) Unwrap() error { return e.err }

// defaultPlaces are the user's cache and, for those who have no home or may
// not write to it, directories that only the user may enter. It also says why
// the cache is not among them.
func defaultPlaces() (places, refused []string) {
	cache, err := os.UserCacheDir()
	if err == nil {
		_, err = os.Stat(filepath.Dir(cache)) // a home that is not there is not ours to make
	}
	if err == nil {
		places = append(places, filepath.Join(cache, "diagnose", "agent"))
	} else {
		refused = append(refused, fmt.Sprintf("there is no directory for caches: %v", err))
	}
	private := filepath.Join(fmt.Sprintf("diagnose-%d", os.Geteuid()), "agent")
	for _, temporary := range []string{os.TempDir(), "/var/tmp"} {
		places = append(places, filepath.Join(temporary, private))
	}
	return places, refused
}

// keep returns the library of a directory, which it makes when it is not
// there. Two processes may do so at once: each makes its own, and the first one
// stays, for programs may have it mapped already, and recordings of them name
// that very file. Every error that another place might not have is a
// *placeError.
func keep(ctx context.Context, dir string, m maker) (string, error) {
	path, err := find(dir, m)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	if dir, err = makePrivate(dir); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, ".new-*")
	if err != nil {
		return "", &placeError{dir, err}
	}
	defer os.RemoveAll(work)
	if err := m.put(ctx, work); err != nil {
		return "", err
	}
	made, path := filepath.Join(work, m.name), filepath.Join(dir, m.name)
	if err := m.check(made); err != nil {
		return "", err
	}
	if err := finish(made); err != nil {
		return "", &placeError{dir, err}
	}
	for _, name := range m.beside {
		err := finish(filepath.Join(work, name))
		if err == nil {
			err = os.Rename(filepath.Join(work, name), filepath.Join(dir, name))
		}
		if err != nil {
			return "", &placeError{dir, err}
		}
	}
	if os.Link(made, path) == nil {
		return path, nil
	}
	if first, err := find(dir, m); err == nil {
		return first, nil
	}
	// The file there is damaged, or the file system has no links.
	if err := os.Rename(made, path); err != nil {
		return "", &placeError{dir, err}
	}
	return path, nil
}

// finish brings the file to the disk, so that no name ever refers to half
// of it, and takes the right to write to what programs have mapped.
func finish(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o400); err != nil {
		return err
	}
	return f.Sync()
}

// find returns the library of a directory if no other user can have put it
// there; fs.ErrNotExist if there is none yet.
func find(dir string, m maker) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err != nil {
		return "", &placeError{dir, err}
	}
	if err := checkPlace(real); err != nil {
		return "", &placeError{real, err}
	}
	path := filepath.Join(real, m.name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err == nil {
		err = checkFile(path, info)
	}
	if err != nil {
		return "", &placeError{real, err}
	}
	if m.check(path) != nil {
		return "", fs.ErrNotExist // ours and damaged: it is replaced
	}
	return path, nil
}

func checkFile(path string, info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", path, owner(info))
	case info.Mode()&0o022 != 0:
		return fmt.Errorf("%s can be written to by others (mode %#o)", path, info.Mode().Perm())
	}
	return nil
}

// makePrivate makes a directory, and those above it, for the user alone.
func makePrivate(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &placeError{dir, err}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = checkPlace(real)
	}
	if err != nil {
		return "", &placeError{dir, err}
	}
	return real, nil
}

// MakePrivate makes a directory for what only this user may put there, and returns
// its path without symbolic links. It is an error if others could put something there,
// or replace it.
func MakePrivate(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return real, checkPrivate(real)
}

// checkPlace refuses a directory, given without symbolic links, into which
// another user could put a library for us to load, and one from which the
// dynamic linker cannot load it.
func checkPlace(dir string) error {
	if err := checkPrivate(dir); err != nil {
		return err
	}
	// ld.so(8): the list is separated by spaces or colons, and there is no way
	// to escape them; $ORIGIN and the like are replaced.
	if strings.ContainsAny(dir, " :$") {
		return errors.New("LD_PRELOAD cannot name a path with a space, a colon or a dollar sign in it")
	}
	var system unix.Statfs_t
	if err := unix.Statfs(dir, &system); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if system.Flags&unix.ST_NOEXEC != 0 {
		return errors.New("its file system is mounted noexec")
	}
	return nil
}

// checkPrivate refuses a directory, given without symbolic links, into which another user could put files.
func checkPrivate(dir string) error {
	for parent := dir; ; parent = filepath.Dir(parent) {
		if err := checkDirectory(parent, parent == dir); err != nil {
			return err
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// checkDirectory: whoever may write to a directory may replace its files,
// except that in a sticky one (/tmp) everybody's entries are their own. The
// last directory holds the library, which anybody could be first to put there.
func checkDirectory(dir string, last bool) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	uid, mode := owner(info), info.Mode()
	switch {
	case !mode.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case uid != os.Geteuid() && (last || uid != 0):
		return fmt.Errorf("%s belongs to user %d", dir, uid)
	case mode&0o022 != 0 && (last || mode&fs.ModeSticky == 0):
		return fmt.Errorf("%s can be written to by others (mode %#o)", dir, mode.Perm())
	}
	return nil
}

func owner(info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}
