package object

import (
	"errors"
	"path/filepath"
	"strings"
	"time"
)

// Finder finds the objects of a process and their separate debug files. It
// is safe for concurrent use and may be copied.
type Finder struct {
	// Sysroot is prefixed to absolute paths that come from the process; "" is
	// this machine's root.
	Sysroot string
	// DebugDirs are searched before /usr/lib/debug.
	DebugDirs []string
	// Debuginfod holds server URLs; empty means that no network is used.
	Debuginfod []string
	// Timeout bounds each download; 0 is 90 s (debuginfod's own default).
	Timeout time.Duration
	// CacheDir keeps downloads; "" is $XDG_CACHE_HOME/debuginfod_client.
	CacheDir string
	// Progress, if set, is told about slow steps.
	Progress func(string)
}

// systemDebugDir is where distributions install debug files.
const systemDebugDir = "/usr/lib/debug"

// Open opens an object by the path that the process has it by, beneath
// Sysroot: symbolic links and ".." do not lead out of it.
func (d *Finder) Open(path string) (*File, error) {
	if d.Sysroot == "" {
		return Open(path)
	}
	return openBeneath(d.Sysroot, path)
}

// Debug returns the file that holds f's DWARF: f itself, or a separate file
// found by build-id, .gnu_debuglink or debuginfod, checked to belong to f. A
// separate file without DWARF is returned for its symbols; HasDWARF tells.
// (nil, nil) means that there is none; err says what was found but unusable.
// The caller closes the result unless it is f.
func (d *Finder) Debug(f *File) (*File, error) {
	if f.HasDWARF() {
		return f, nil
	}
	s := search{finder: d, accept: func(c *File) error { return c.checkBuildID(f.BuildID()) }}
	s.buildID(f.BuildID())
	s.debugLink(f)
	s.debuginfod(f.BuildID())
	return s.result()
}

// checkBuildID compares build-ids; id may be "" for not known.
func (f *File) checkBuildID(id string) error {
	if have := f.BuildID(); have != id {
		return f.formatError("", 0, "build-id %q where %q is needed", have, id)
	}
	return nil
}

// search tries places until one holds the file that is looked for.
type search struct {
	finder *Finder
	// accept says why a file is not the one that is looked for.
	accept func(*File) error
	found  *File
	errs   []error
}

// result returns the file, or what was wrong with all that were found.
func (s *search) result() (*File, error) {
	if s.found != nil {
		return s.found, nil
	}
	return nil, errors.Join(s.errs...)
}

// try opens a file unless one is found already. That there is none is no
// error.
func (s *search) try(open func() (*File, error)) {
	if s.found != nil {
		return
	}
	c, err := open()
	if err != nil {
		if !absent(err) {
			s.errs = append(s.errs, err)
		}
		return
	}
	// A truncated debug file has lost its section table, and so everything.
	err = c.Damage()
	if err == nil {
		err = s.accept(c)
	}
	if err != nil {
		s.errs = append(s.errs, err)
		c.Close()
		return
	}
	s.found = c
}

func (s *search) host(path string) {
	s.try(func() (*File, error) { return Open(path) })
}

// target tries a path of the process.
func (s *search) target(path string) {
	s.try(func() (*File, error) { return s.finder.Open(path) })
}

// sibling tries a path in the world that f was found in: beneath the sysroot,
// which is not to be left, or on this machine.
func (s *search) sibling(f *File, path string) {
	if f.root == "" {
		s.host(path)
		return
	}
	s.try(func() (*File, error) { return openBeneath(f.root, path) })
}

// inDebugDirs tries a path in the user's debug directories, in the sysroot's
// and in this machine's.
func (s *search) inDebugDirs(path string) {
	path = filepath.Clean("/" + path)
	for _, dir := range s.finder.DebugDirs {
		s.host(filepath.Join(dir, path))
	}
	if s.finder.Sysroot != "" {
		s.target(filepath.Join(systemDebugDir, path))
	}
	s.host(filepath.Join(systemDebugDir, path))
}

// buildID tries the build-id directories.
func (s *search) buildID(id string) {
	if len(id) > 2 {
		s.inDebugDirs(".build-id/" + id[:2] + "/" + id[2:] + ".debug")
	}
}

// dirs returns the directories that f is in, as the process and this machine
// name them: with a merged /usr they differ. An object that comes from memory
// is in none.
func (f *File) dirs() []string {
	if !filepath.IsAbs(f.target) {
		return nil
	}
	dirs := []string{filepath.Dir(f.target)}
	real, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return dirs
	}
	if f.root != "" {
		root, err := filepath.EvalSymlinks(f.root)
		rest, beneath := strings.CutPrefix(real, root)
		if err != nil || !beneath || !strings.HasPrefix(rest, "/") {
			return dirs
		}
		real = rest
	}
	if dir := filepath.Dir(real); filepath.IsAbs(dir) && dir != dirs[0] {
		dirs = append(dirs, dir)
	}
	return dirs
}

func (d *Finder) progress(text string) {
	if d.Progress != nil {
		d.Progress(text)
	}
}
