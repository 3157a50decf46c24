package record

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openInside opens a regular file of a recording for reading. A name never leads out of the
// directory, whatever symbolic links it contains. A pipe in place of a file is refused, since
// opening it would wait for a writer.
func openInside(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &InputError{err}
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &InputError{fmt.Errorf("%s: %w", dir, err)}
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: f.Name(), Err: fmt.Errorf("is not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, &InputError{err}
	}
	return f, nil
}
