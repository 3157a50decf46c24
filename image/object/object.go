package object

import (
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// File is one ELF object. It is safe for concurrent use, except Close.
type File struct {
	contents
	headers
	symbols symbols

	// target is the process's path, beneath root; root is "" for a file that
	// was opened as one of this machine.
	target, root string

	buildID func() string
}

// Open maps an x86-64 ELF object. The error is a *FormatError for a file that
// is not one, or one of the file system.
func Open(path string) (*File, error) {
	target, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return openFile(&File{contents: contents{path: path}, target: target}, hostFile(path))
}

// openBeneath opens an object by its path beneath another root.
func openBeneath(root, path string) (*File, error) {
	path = filepath.Clean("/" + path)
	f := &File{contents: contents{path: filepath.Join(root, path)}, target: path, root: root}
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
	f := &File{contents: contents{path: name, data: data}, target: name}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// read reads the headers, and sets up the parts that are read on demand.
func (f *File) read() error {
	f.buildID = sync.OnceValue(f.findBuildID)
	f.headers.file = &f.contents
	f.symbols.prepare(&f.headers)
	var err error
	if fault := f.guard("", func() { err = f.parse() }); fault != nil {
		return fault
	}
	return err
}

// Close unmaps the object. No slice obtained from it may be used afterwards,
// nor any file that it was given to with AddSymbols.
func (f *File) Close() error { return f.close() }

// Path returns the path the object was opened by.
func (f *File) Path() string { return f.path }

// SymbolAt returns the function or object symbol that covers the link-time
// address: the innermost one whose [Value, Value+Size) holds it, else the
// nearest preceding sizeless one in the same section, if no sized one starts
// between. Among several with the same value it takes the name that is last
// in byte order, whatever its binding, as gdb does: "write" before "__write";
// but the object's own tables before separate ones.
// Symbol tables are .symtab, .dynsym, those of AddSymbols, and, for an
// address that these do not cover, that of .gnu_debugdata; and, made from the
// relocations, PLT stubs ("read@plt") and their words of the global offset
// table ("read@got.plt").
// An address in a file truncated meanwhile has no symbol.
func (f *File) SymbolAt(vaddr uint64) (s Symbol, ok bool) {
	return f.guarded(func() (Symbol, bool) { return f.symbols.covering(vaddr) })
}

// SymbolNamed returns the symbol with exactly this (mangled, unversioned)
// name: of several the default version, and global before weak before local.
// Tables are searched in the order .dynsym, .symtab, those of AddSymbols,
// .gnu_debugdata. "read@plt" names a PLT stub.
func (f *File) SymbolNamed(name string) (s Symbol, ok bool) {
	return f.guarded(func() (Symbol, bool) { return f.symbols.named(name) })
}

// ThreadLocalAt returns the thread-local symbol that covers an offset in the
// object's thread-local block. Tables are scanned in full, because lookups are
// rare.
func (f *File) ThreadLocalAt(offset uint64) (s Symbol, ok bool) {
	return f.guarded(func() (Symbol, bool) { return f.symbols.threadLocalAt(offset) })
}

// guarded looks a symbol up; a fault finds none.
func (f *File) guarded(lookup func() (Symbol, bool)) (s Symbol, ok bool) {
	if f.guard("", func() { s, ok = lookup() }) != nil {
		return Symbol{}, false
	}
	return s, ok
}

// AddSymbols adds the symbols of f's separate debug file to f's own. debug
// must stay open as long as f.
func (f *File) AddSymbols(debug *File) {
	if debug != nil && debug != f {
		f.symbols.addDebug(&debug.symbols)
	}
}

// SymbolSource says where symbols come from: "symtab" (the object's own or
// that of AddSymbols), "minidebuginfo", "dynsym", "none".
func (f *File) SymbolSource() string { return f.symbols.source() }
