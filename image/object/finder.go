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
	// Progress, if set, is called with a line about each slow step.
	Progress func(string)
}

// systemDebugDir is where distributions install debug files.
const systemDebugDir = "/usr/lib/debug"

// Open opens an object by the process's path, beneath Sysroot. Symbolic links
// and ".." do not leave Sysroot.
func (d *Finder) Open(path string) (*File, error) {
	if d.Sysroot == "" {
		return Open(path)
	}
	return openBeneath(d.Sysroot, path)
}

// Debug returns the file that holds f's DWARF: f itself, or a separate file
// found by build-id, .gnu_debuglink or debuginfod, checked to belong to f. A
// separate file without DWARF is returned for its symbols; HasDWARF
// distinguishes them. (nil, nil) means that there is none; err describes files
// that were found but are unusable. The caller closes the result unless it is
// f.
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

// search tries paths until one is the wanted file.
type search struct {
	finder *Finder
	// accept says why a file is not the wanted one.
	accept func(*File) error
	found  *File
	errs   []error
}

// result returns the file, or the errors of all that were found.
func (s *search) result() (*File, error) {
	if s.found != nil {
		return s.found, nil
	}
	return nil, errors.Join(s.errs...)
}

// try opens a file unless one is found already. A missing file is no error.
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
	// A truncated debug file has no section table, and so nothing of use.
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

// sibling tries a path in the root that f was found in: strictly beneath the
// sysroot, or on this machine.
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

// dirs returns the directory of f, by the process's path and by this machine's:
// with a merged /usr they differ. An object from memory has none.
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
