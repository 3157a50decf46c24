package object

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// opener opens the same file with different flags.
type opener func(flags int) (fd int, err error)

// hostFile opens a path of this machine.
func hostFile(path string) opener {
	return func(flags int) (int, error) { return unix.Open(path, flags, 0) }
}

// fileBeneath opens a path of another root. Symbolic links, absolute ones and
// ".." among them, are resolved as chroot(2) would, so that a hostile tree
// cannot name files outside.
func fileBeneath(root, path string) opener {
	relative := strings.TrimPrefix(filepath.Clean("/"+path), "/")
	return func(flags int) (int, error) {
		dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT}
		for try := 0; ; try++ {
			fd, err := unix.Openat2(dir, relative, &how)
			// EAGAIN: a rename raced with a ".." (openat2(2)).
			if err == unix.EAGAIN && try < 8 {
				continue
			}
			if err == unix.ENOSYS || err == unix.EPERM {
				return openInRoot(root, relative, flags)
			}
			return fd, err
		}
	}
}

// openInRoot is for kernels before 5.6 and sandboxes without openat2. Unlike
// openat2 it rejects absolute links.
func openInRoot(root, relative string, flags int) (int, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return -1, err
	}
	defer r.Close()
	// os.Root does not know O_PATH: O_NONBLOCK keeps a FIFO from hanging.
	f, err := r.OpenFile(relative, flags&^unix.O_PATH|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// openRegular opens a file only if it is a regular one: a core may name a FIFO,
// which would hang, or a device, which has effects when opened.
func openRegular(path string, open opener) (fd int, size int64, err error) {
	probe, err := open(unix.O_PATH | unix.O_CLOEXEC)
	if err != nil {
		return -1, 0, pathError("open", path, err)
	}
	_, err = regularSize(path, probe)
	unix.Close(probe)
	if err != nil {
		return -1, 0, err
	}
	fd, err = open(unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC)
	if err != nil {
		return -1, 0, pathError("open", path, err)
	}
	if size, err = regularSize(path, fd); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, size, nil
}

// OpenRegular opens a file for reading, and returns its size in bytes. It fails for
// files that are not regular, without opening them: opening a device has effects, and
// opening a pipe waits.
func OpenRegular(path string) (*os.File, int64, error) {
	fd, size, err := openRegular(path, hostFile(path))
	if err != nil {
		return nil, 0, err
	}
	return os.NewFile(uintptr(fd), path), size, nil
}

func regularSize(path string, fd int) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, pathError("stat", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, &FormatError{File: path, Reason: "is not a regular file"}
	}
	return st.Size, nil
}

func pathError(op, path string, err error) error {
	var known *fs.PathError
	if errors.As(err, &known) {
		return err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// absent reports whether err only says that there is no such file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// mapFile opens and maps a file; path is used in errors.
func mapFile(path string, open opener) ([]byte, error) {
	fd, size, err := openRegular(path, open)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if size == 0 {
		return nil, &FormatError{File: path, Reason: "is empty"}
	}
	data, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, pathError("mmap", path, err)
	}
	return data, nil
}
