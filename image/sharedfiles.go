package image

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"diagnose/image/debuginfo"
	"diagnose/image/object"
)

// Files keeps the files of objects open, with the debug information that was read from them, for the processes that
// are opened with it (Options.Files): the images of one program at many moments then read them once. It is safe for
// concurrent use.
type Files struct {
	mu     sync.Mutex
	closed bool
	loaded map[fileIdentity]*loadedFile
}

// NewFiles returns an empty one. It must be closed.
func NewFiles() *Files { return &Files{loaded: map[fileIdentity]*loadedFile{}} }

// fileIdentity is a path, and what the file system says of the file that it leads to.
type fileIdentity struct {
	path            string
	device, inode   uint64
	size            int64
	changed, status syscall.Timespec
}

func identify(path string) (id fileIdentity, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return id, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return id, false
	}
	return fileIdentity{path: path, device: s.Dev, inode: s.Ino, size: s.Size, changed: s.Mtim, status: s.Ctim}, true
}

// open returns the file that open would open at a path, for one more user. A nil Files keeps none.
func (fs *Files) open(path string, open func() (*object.File, error)) (*loadedFile, error) {
	if fs == nil {
		o, err := open()
		if err != nil {
			return nil, err
		}
		return &loadedFile{object: o, users: 1}, nil
	}
	id, known := identify(path)
	if known {
		if f := fs.kept(id); f != nil {
			return f, nil
		}
	}
	o, err := open()
	if err != nil {
		return nil, err
	}
	f := &loadedFile{object: o, users: 1}
	if now, still := identify(path); known && still && now == id {
		fs.keep(id, f)
	}
	return f, nil
}

// kept returns a file that is open already, for one more user; nil: it is not.
func (fs *Files) kept(id fileIdentity) *loadedFile {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.loaded[id]
	if f != nil {
		f.users++
	}
	return f
}

// keep makes a file one that is kept, unless another goroutine has opened it meanwhile.
func (fs *Files) keep(id fileIdentity, f *loadedFile) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed || fs.loaded[id] != nil {
		return
	}
	f.files = fs
	f.users++
	fs.loaded[id] = f
}

// Close closes the files that no process has open; those of the others are closed with them.
func (fs *Files) Close() error {
	fs.mu.Lock()
	list := fs.loaded
	fs.loaded, fs.closed = nil, true
	fs.mu.Unlock()
	var errs []error
	for _, f := range list {
		errs = append(errs, f.release())
	}
	return errors.Join(errs...)
}

// loadedFile is the file of an object, with the file that has its debug information.
type loadedFile struct {
	object *object.File
	// files keeps it; nil: its only user is a process.
	files *Files
	users int // guarded by files.mu

	separateOnce sync.Once
	debugFile    *object.File
	separateErr  error
	// separate is debugFile if that is another file than object.
	separate atomic.Pointer[object.File]

	debugOnce sync.Once
	debug     *debuginfo.Info
	debugErr  error
	// opened is debug, once opened, for code that must not open it.
	opened atomic.Pointer[debuginfo.Info]
}

// findDebugFile finds the file with the object's DWARF and adds that file's symbols to the object's own.
func (f *loadedFile) findDebugFile(finder *object.Finder) error {
	f.separateOnce.Do(func() {
		if f.object == nil {
			return
		}
		f.debugFile, f.separateErr = finder.Debug(f.object)
		if f.debugFile != nil && f.debugFile != f.object {
			f.object.AddSymbols(f.debugFile)
			f.separate.Store(f.debugFile)
		}
	})
	return f.separateErr
}

// debugInfo returns the object's DWARF, opened at the first call; nil without an error when there is none.
func (f *loadedFile) debugInfo(finder *object.Finder) (*debuginfo.Info, error) {
	f.debugOnce.Do(func() {
		f.debugErr = f.findDebugFile(finder)
		if f.debugFile != nil && f.debugFile.HasDWARF() {
			f.debug, f.debugErr = debuginfo.Open(f.debugFile, finder)
			f.opened.Store(f.debug)
		}
	})
	return f.debug, f.debugErr
}

// release closes the file if this was its last user.
func (f *loadedFile) release() error {
	if f.files != nil {
		f.files.mu.Lock()
		f.users--
		left := f.users
		f.files.mu.Unlock()
		if left > 0 {
			return nil
		}
	}
	var errs []error
	if info := f.opened.Swap(nil); info != nil {
		errs = append(errs, info.Close())
	}
	if s := f.separate.Swap(nil); s != nil {
		errs = append(errs, s.Close())
	}
	if f.object != nil {
		errs = append(errs, f.object.Close())
	}
	return errors.Join(errs...)
}
