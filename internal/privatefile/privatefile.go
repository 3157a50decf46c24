// Package privatefile reads and writes files for their owner alone. It reads secrets, and writes
// files that hold memory of a process. A file appears under its name as
// a whole or not at all, is readable by its owner alone, and replaces any old file of the name: a
// file that others may read, or a symbolic link, is replaced and neither written to nor followed.
package privatefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write makes a file with the given content.
func Write(path string, data []byte) error {
	return Replace(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Replace makes a file with the content that write writes. The file is made under another name in
// the same directory and renamed. If write fails, an old file of the name is not changed. The
// errors of write are returned as they are.
func Replace(path string, write func(io.Writer) error) error {
	dir, name := filepath.Split(path)
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("%s is no name of a file", path)
	}
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, ".diagnose-*") // a new file of mode 0600
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path) // which replaces a symbolic link
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
