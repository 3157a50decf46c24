package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"diagnose/replay/record/eventlog"
)

// Recording is an open directory of a recording, for reading.
type Recording struct {
	Dir      string
	Manifest *Manifest
	Log      *eventlog.Log

	file *os.File
	// part is set if the recording ends before the directory's does (Until).
	part bool
}

// Open opens a recording. If it was cut off, it opens with the rest: Log.Cut and the iterators
// report where it ends. It fails if nothing can be read: there is no manifest, or no recorder
// wrote the log.
func Open(dir string) (*Recording, error) { return OpenContext(context.Background(), dir) }

// OpenContext is Open with a context, and fails with the context's cause when that ends. A log
// made to be slow to read, with very many extents, takes long.
func OpenContext(ctx context.Context, dir string) (*Recording, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	r := &Recording{Dir: dir, Manifest: m}
	r.file, err = openInside(dir, LogName)
	if errors.Is(err, os.ErrNotExist) {
		r.Log = eventlog.MissingLog(LogName)
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Log, err = eventlog.OpenLog(ctx, LogName, r.file, m.Sizes.Log); err != nil {
		r.file.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the recording and its log.
func (r *Recording) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// File opens a file of the recording by its name there.
func (r *Recording) File(name string) (*os.File, error) { return openInside(r.Dir, name) }

// Core returns the path of the core of the process's end. The error is os.ErrNotExist if there
// is none.
func (r *Recording) Core() (string, error) {
	if err := r.coreOfPart(); err != nil {
		return "", err
	}
	f, err := openInside(r.Dir, CoreName)
	if err != nil {
		return "", err
	}
	f.Close()
	return filepath.Join(r.Dir, CoreName), nil
}

// Child opens the recording of a child process that the manifest names.
func (r *Recording) Child(c Child) (*Recording, error) {
	if err := r.CheckChild(c.Path); err != nil {
		return nil, err
	}
	return Open(filepath.Join(r.Dir, filepath.FromSlash(c.Path)))
}

// CheckChild checks that a child's directory is inside this one's. A symbolic link could lead
// from it to itself.
func (r *Recording) CheckChild(path string) error {
	if !insidePath(path) {
		return &ManifestError{"children", fmt.Sprintf("have the path %q", path)}
	}
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return &eventlog.InputError{Err: err}
	}
	defer root.Close()
	for _, name := range []string{ChildrenName, path} {
		info, err := root.Lstat(name)
		if err != nil {
			return &eventlog.InputError{Err: fmt.Errorf("%s: %w", r.Dir, err)}
		}
		if !info.IsDir() {
			return &eventlog.InputError{Err: fmt.Errorf("%s: %s is not a directory", r.Dir, name)}
		}
	}
	return nil
}

// Parent opens the recording that this one is a child of: the directory above the directory of
// children that contains it. The error is os.ErrNotExist if the recording has no parent, or was
// moved away from it.
func (r *Recording) Parent() (*Recording, error) {
	dir, err := filepath.Abs(r.Dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	children := filepath.Dir(dir)
	if r.Manifest.Parent == nil || filepath.Base(children) != ChildrenName {
		return nil, fmt.Errorf("record: parent of %s: %w", r.Dir, os.ErrNotExist)
	}
	p, err := Open(filepath.Dir(children))
	if err != nil {
		return nil, err
	}
	for _, c := range p.Manifest.Children {
		if c.Path == ChildrenName+"/"+filepath.Base(dir) {
			return p, nil
		}
	}
	p.Close()
	return nil, fmt.Errorf("record: %s has no child %s: %w", p.Dir, filepath.Base(dir), os.ErrNotExist)
}
