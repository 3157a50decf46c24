package object

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// maxBuildID bounds a build-id; linkers write 8 to 32 bytes.
const maxBuildID = 64

// noteGNUBuildID is NT_GNU_BUILD_ID of elf.h.
const noteGNUBuildID = 3

// BuildID returns the NT_GNU_BUILD_ID note in lower-case hexadecimal, or "".
func (f *File) BuildID() string { return f.buildID() }

// BuildIDOf returns the build-id of the object file at path as BuildID does;
// "" also if the file cannot be read or is no ELF object.
func BuildIDOf(path string) string {
	f, err := Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return f.BuildID()
}

// findBuildID reads the note sections first, because the program headers of a
// debug file describe the object that it was made from.
func (f *File) findBuildID() string {
	id := ""
	// Unreadable notes count as none.
	_ = f.guard("", func() {
		for i := range f.sections {
			s := &f.sections[i]
			if s.Type != uint32(elf.SHT_NOTE) || id != "" {
				continue
			}
			if b, err := s.stored(); err == nil {
				id = BuildIDNote(b, 4)
			}
		}
		for i := range f.programs {
			p := &f.programs[i]
			if p.kind != uint32(elf.PT_NOTE) || id != "" {
				continue
			}
			if b, ok := f.bytes(p.offset, p.filesz); ok {
				id = BuildIDNote(b, p.align)
			}
		}
	})
	return id
}

// BuildIDNote searches the bytes of a note section or segment for a build-id
// and returns it in lower-case hexadecimal, "" if there is none. The notes'
// fields are padded to four bytes, or to eight if the segment has that
// alignment.
func BuildIDNote(b []byte, align uint64) string {
	if align != 8 {
		align = 4
	}
	pad := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	for len(b) >= 12 {
		nameSize := uint64(binary.LittleEndian.Uint32(b))
		descSize := uint64(binary.LittleEndian.Uint32(b[4:]))
		kind := binary.LittleEndian.Uint32(b[8:])
		desc := pad(12 + nameSize)
		next := pad(desc + descSize)
		if desc+descSize > uint64(len(b)) {
			return ""
		}
		name := strings.TrimRight(string(b[12:12+min(nameSize, 8)]), "\x00")
		if kind == noteGNUBuildID && name == "GNU" && descSize > 0 && descSize <= maxBuildID {
			return hex.EncodeToString(b[desc : desc+descSize])
		}
		b = b[min(next, uint64(len(b))):]
	}
	return ""
}
