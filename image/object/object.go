package object

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is one ELF object. It is safe for concurrent use, except Close.
type File struct {
	path string
	// target is the process's path, beneath root; root is "" for a file that
	// was opened as one of this machine.
	target, root string
	data         []byte
	mapped       bool
	close        sync.Once
	// spilled are the large decompressed sections.
	spilled    []*spill
	spillMutex sync.Mutex

	kind     uint16
	programs []program
	loads    []Segment
	sections []Section
	// hollow: a debug file whose loaded sections have headers but no bytes.
	hollow bool
	// damage describes parts that Open could not read and does not need.
	damage error

	buildID  func() string
	own      func() ownSymbols
	links    func() *linkage
	mini     func() *symbolTable
	attached atomic.Pointer[[]*symbolTable]
	attach   sync.Mutex
}

// Open maps an x86-64 ELF object. The error is a *FormatError for a file that
// is not one, or one of the file system.
func Open(path string) (*File, error) {
	target, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return openFile(&File{path: path, target: target}, hostFile(path))
}

// openBeneath opens an object by its path beneath another root.
func openBeneath(root, path string) (*File, error) {
	path = filepath.Clean("/" + path)
	f := &File{path: filepath.Join(root, path), target: path, root: root}
	return openFile(f, fileBeneath(root, path))
}

// openFile maps and reads the file at f's path.
func openFile(f *File, open opener) (*File, error) {
	data, err := mapFile(f.path, open)
	if err != nil {
		return nil, err
	}
	f.data, f.mapped = data, true
	if err := f.read(); err != nil {
		unix.Munmap(data)
		return nil, err
	}
	return f, nil
}

// FromBytes reads an object from memory, such as the vDSO; name is used in
// errors. data must not change afterwards.
func FromBytes(name string, data []byte) (*File, error) {
	f := &File{path: name, target: name, data: data}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// read reads the headers, and sets up the parts that are read on demand.
func (f *File) read() error {
	f.buildID = sync.OnceValue(f.findBuildID)
	f.own = sync.OnceValue(f.findSymbols)
	f.links = sync.OnceValue(f.findLinkage)
	f.mini = sync.OnceValue(f.findMiniSymbols)
	var err error
	if fault := f.guard("", func() { err = f.parse() }); fault != nil {
		return fault
	}
	return err
}

// Close unmaps the object. No slice obtained from it may be used afterwards,
// nor any file that it was given to with AddSymbols.
func (f *File) Close() error {
	var err error
	f.close.Do(func() {
		err = f.dropSpilled()
		if f.mapped {
			err = errors.Join(err, unix.Munmap(f.data))
		}
	})
	return err
}

// Path returns the path the object was opened by.
func (f *File) Path() string { return f.path }

// Type returns elf.ET_EXEC, elf.ET_DYN, ...
func (f *File) Type() uint16 { return f.kind }

// Damage describes the headers that could not be read, such as a section table
// past the end of a truncated file; nil for a sound object.
func (f *File) Damage() error { return f.damage }

// bytes returns part of the file; ok is false when it is outside.
func (f *File) bytes(offset, size uint64) (b []byte, ok bool) {
	if n := uint64(len(f.data)); offset > n || size > n-offset {
		return nil, false
	}
	return f.data[offset : offset+size : offset+size], true
}

func (f *File) formatError(section string, offset uint64, reason string, args ...any) *FormatError {
	return &FormatError{File: f.path, Section: section, Offset: offset, Reason: fmt.Sprintf(reason, args...)}
}

// guard runs read, which accesses mapped bytes. If the file was truncated after
// it was mapped, the kernel raises SIGBUS (mmap(2)), which becomes an error.
func (f *File) guard(section string, read func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = f.faultError(section, fault.Addr())
		default:
			panic(fault)
		}
	}()
	read()
	return nil
}

func (f *File) faultError(section string, addr uintptr) error {
	var offset uint64
	if len(f.data) > 0 {
		if base := uintptr(unsafe.Pointer(&f.data[0])); addr >= base && addr-base < uintptr(len(f.data)) {
			offset, section = uint64(addr-base), ""
		}
	}
	return f.formatError(section, offset, "the file was truncated while it was read")
}

// HasDWARF reports whether the object itself holds .debug_info.
func (f *File) HasDWARF() bool {
	s := f.Section(".debug_info")
	return s != nil && s.Type != uint32(elf.SHT_NOBITS) && s.rawSize > 0
}
