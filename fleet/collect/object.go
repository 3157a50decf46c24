package collect

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/corestream"
	"diagnose/fleet/collect/spool"
	"diagnose/image/collected"
	"diagnose/image/object"
)

const (
	// mostObjects bounds the files that are kept for a core.
	mostObjects = 2048
	// mostHeaders, mostNotes and mostNote bound the search for the build-id of an object.
	mostHeaders, mostNotes, mostNote = 128, 8, 16 << 10
)

// source opens the file of a mapping.
type source interface {
	mapped(*corestream.FileMapping) (*os.File, error)
}

// hostFiles are the files of this machine, for a core whose process has ended.
type hostFiles struct{}

func (hostFiles) mapped(m *corestream.FileMapping) (*os.File, error) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return openBelow(root, m.Path)
}

// module is a file that was mapped to be executed.
type module struct {
	path string
	// mappings are indexes in Head.Files. start is the mapping of the file's first byte.
	mappings []int
	start    int
	code     bool
}

// modulesOf groups the mappings by file. A file whose first byte is not mapped is none.
func modulesOf(h *corestream.Head) []*module {
	byPath := map[string]*module{}
	var list, kept []*module
	for i := range h.Files {
		f := &h.Files[i]
		m := byPath[f.Path]
		if m == nil {
			m = &module{path: f.Path, start: -1}
			byPath[f.Path] = m
			list = append(list, m)
		}
		m.mappings = append(m.mappings, i)
		m.code = m.code || h.Executable(f.Start)
		if f.Offset == 0 && m.start < 0 {
			m.start = i
		}
	}
	for _, m := range list {
		if m.code && m.start >= 0 && len(kept) < mostObjects && !strings.HasPrefix(m.path, "/dev/") && !strings.HasPrefix(m.path, "/memfd:") {
			kept = append(kept, m)
		}
	}
	return kept
}

// identity is what an object's program headers say.
type identity struct {
	// buildID is that of the notes which are in memory, too: readers of the core know the object by it.
	buildID string
	notes   []corestream.FileRange
}

var errNoObject = errors.New("it is no ELF object of x86-64")

// identify reads an object's program headers and notes.
func identify(f *os.File) (*identity, error) {
	le := binary.LittleEndian
	var h elf.Header64
	var b [64]byte
	if _, err := f.ReadAt(b[:], 0); err != nil {
		return nil, errNoObject
	}
	if _, err := binary.Decode(b[:], le, &h); err != nil {
		return nil, err
	}
	if string(b[:4]) != elf.ELFMAG || elf.Class(b[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(b[elf.EI_DATA]) != elf.ELFDATA2LSB ||
		elf.Machine(h.Machine) != elf.EM_X86_64 || h.Phentsize != 56 || h.Phoff >= 1<<40 {
		return nil, errNoObject
	}
	id := new(identity)
	for i := range min(int(h.Phnum), mostHeaders) {
		var p elf.Prog64
		var b [56]byte
		if _, err := f.ReadAt(b[:], int64(h.Phoff)+int64(i)*56); err != nil {
			return nil, errNoObject
		}
		if _, err := binary.Decode(b[:], le, &p); err != nil {
			return nil, err
		}
		if elf.ProgType(p.Type) != elf.PT_NOTE || p.Off >= 1<<40 || p.Filesz > 1<<30 || len(id.notes) == mostNotes {
			continue
		}
		id.notes = append(id.notes, corestream.FileRange{Start: p.Off, End: p.Off + p.Filesz})
		note := make([]byte, min(p.Filesz, mostNote))
		n, _ := f.ReadAt(note, int64(p.Off)) // a part is enough if it has the build-id
		if id.buildID == "" {
			id.buildID = object.BuildIDNote(note[:n], p.Align)
		}
	}
	return id, nil
}

// keeper keeps the objects of a core.
type keeper struct {
	head  *corestream.Head
	from  source
	stage *spool.Stage
	facts *collected.Facts
	open  []*os.File
}

func (k *keeper) close() {
	for _, f := range k.open {
		f.Close()
	}
}

// keep keeps the modules' files, and returns those with a build-id: a page of the core that is equal
// is found by it later. A file that cannot be kept is noted; only a full disk is an error.
func (k *keeper) keep(modules []*module) (map[int]*corestream.Object, error) {
	objects := map[int]*corestream.Object{}
	for _, m := range modules {
		o, err := k.one(m)
		if isFull(err) {
			return nil, err
		}
		if err != nil {
			k.facts.Lacking = append(k.facts.Lacking, collected.Lacking{Path: valid(m.path), Reason: valid(err.Error())})
		}
		if o == nil {
			continue
		}
		for _, i := range m.mappings {
			objects[i] = o
		}
	}
	return objects, nil
}

// isFull reports whether an error is that of a full disk.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func (k *keeper) one(m *module) (*corestream.Object, error) {
	f, err := k.from.mapped(&k.head.Files[m.start])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	id, err := identify(f)
	if err != nil {
		return nil, err
	}
	name := collected.FileName(id.buildID, m.path)
	if name == "" {
		return nil, errors.New("it has no build-id, and its name is not taken")
	}
	kept, err := k.stage.Object(name, f, info.Size())
	if errors.Is(err, os.ErrExist) {
		return nil, errors.New("another file of the process has its build-id or name")
	}
	if err != nil {
		return nil, err
	}
	k.open = append(k.open, kept)
	k.facts.Objects = append(k.facts.Objects, collected.Object{Path: valid(m.path), File: name, BuildID: id.buildID, Bytes: info.Size()})
	if id.buildID == "" {
		return nil, nil
	}
	return &corestream.Object{Contents: kept, Size: uint64(info.Size()), Keep: id.notes}, nil
}

// valid makes a text of the process fit for JSON.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
