package record

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"diagnose/replay/record/eventlog"
)

// openInside opens a regular file of a recording for reading. A name never leads out of the
// directory, whatever symbolic links it contains. A pipe in place of a file is refused, since
// opening it would wait for a writer.
func openInside(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &eventlog.InputError{Err: err}
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &eventlog.InputError{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("is not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, &eventlog.InputError{Err: err}
	}
	return f, nil
}
