package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/internal/privatefile"
)

// toStandardOutput reports whether the report needs no file of its own. /dev/stdout counts as
// standard output: opening it again would empty a log that standard output is appended to.
func toStandardOutput(path string) bool {
	if path == "" || path == "-" {
		return true
	}
	named, err := os.Stat(path)
	if err != nil {
		return false
	}
	stdout, err := os.Stdout.Stat()
	return err == nil && os.SameFile(named, stdout)
}

// checkOutput refuses a report file that cannot be written, before the analysis starts.
func checkOutput(path string) error {
	if toStandardOutput(path) {
		return nil
	}
	number, own := descriptor(path)
	if own {
		if _, err := unix.FcntlInt(uintptr(number), unix.F_GETFL, 0); err != nil {
			return usagef("--output: %s: %w", path, err)
		}
		return nil
	}
	info, err := os.Stat(path)
	switch link, linkErr := os.Lstat(path); {
	case err == nil && info.IsDir():
		return usagef("--output: %s is a directory, give a file in it", path)
	case linkErr != nil && !errors.Is(linkErr, fs.ErrNotExist):
		return usagef("--output: %w", linkErr)
	case linkErr == nil && link.Mode().Type() == fs.ModeSymlink && err == nil && !info.Mode().IsRegular():
		// To replace /dev/log by a file would take it from every program of the machine.
		return usagef("--output: %s is a symbolic link to something that is no file: name that itself", path)
	case linkErr == nil && special(link):
		return nil
	}
	dir := filepath.Dir(path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return usagef("--output: no file can be made in the directory %s: %w", dir, err)
	}
	return nil
}

// special reports whether a name is of a device, pipe or socket, which is written to
// and never replaced.
func special(info fs.FileInfo) bool {
	return info.Mode().Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// descriptor returns the number of the open descriptor of this process that a path
// names. To open such a path would follow it, and empty the file it leads to.
func descriptor(path string) (int, bool) {
	path = filepath.Clean(path)
	for name, number := range map[string]int{"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2} {
		if path == name {
			return number, true
		}
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", fmt.Sprintf("/proc/%d/fd/", os.Getpid())} {
		if name, found := strings.CutPrefix(path, dir); found {
			number, err := strconv.ParseUint(name, 10, 31)
			return int(number), err == nil
		}
	}
	return 0, false
}

// writeFile writes a report file as a whole or not at all, readable by its owner only: a report
// holds memory of the process.
func writeFile(path string, report []byte) error {
	return writeOutput(path, func(w io.Writer) error {
		_, err := w.Write(report)
		return err
	})
}

// putReport writes a report to standard output, or to the file that the user names.
func putReport(stdout io.Writer, path string, report []byte) error {
	if toStandardOutput(path) {
		_, err := stdout.Write(report)
		return err
	}
	return writeFile(path, report)
}

// writeOutput calls write with the file that the user names: a new private file that replaces any
// old one (see privatefile), or a descriptor or device, which is written to.
func writeOutput(path string, write func(io.Writer) error) error {
	var file *os.File
	var err error
	if number, own := descriptor(path); own {
		file, err = openDescriptor(path, number)
	} else if info, statErr := os.Lstat(path); statErr == nil && special(info) {
		file, err = openSpecial(path)
	} else {
		err = privatefile.Replace(path, write)
	}
	if err == nil && file != nil {
		err = errors.Join(write(file), file.Close())
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

func openDescriptor(path string, number int) (*os.File, error) {
	own, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return os.NewFile(uintptr(own), path), nil
}

// openSpecial opens a device, pipe or socket. It refuses a file or link that has taken its place
// since.
func openSpecial(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !special(info) {
		err = fmt.Errorf("%s was replaced", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
