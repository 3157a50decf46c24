package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// Section is a section header, with its data on demand.
type Section struct {
	// Name is that of the header; a ".zdebug_info" of old toolchains is named
	// ".debug_info", because Data decompresses it.
	Name   string
	Addr   uint64 // link-time address; 0 when not loaded
	Size   uint64 // in memory, that is decompressed
	Offset uint64
	Type   uint32 // elf.SHT_*
	Flags  uint64 // elf.SHF_*

	file      *contents
	table     []Section // the object's
	index     int       // in the section table
	link      uint32
	entrySize uint64
	rawSize   uint64 // in the file
	packing   packing
	growth    *growth // of a compressed section
}

// Data returns the section's contents, decompressed if needed. The slice must
// not be written to. Decompressed contents are kept. SHT_NOBITS is an error.
//
// Contents that are not compressed are the mapped file itself: reading them
// faults, with SIGBUS, if the file is truncated meanwhile, and after Close.
func (s *Section) Data() ([]byte, error) {
	return s.Prefix(s.Size)
}

// Prefix returns at least the first n bytes of the section's contents, all of
// them if there are no more, and decompresses no more than that takes. The
// slice ends with the decompressed bytes, so that missing bytes cannot be taken
// for zeros. Later damage is not seen, and the checksum is compared only when
// all bytes are requested. Once damage is found, every call returns that error.
func (s *Section) Prefix(n uint64) ([]byte, error) {
	if s.packing.method == notPacked {
		return s.stored()
	}
	return s.growth.upTo(n)
}

// stored returns the section's bytes as they are in the file.
func (s *Section) stored() ([]byte, error) {
	if s.Type == uint32(elf.SHT_NOBITS) {
		return nil, s.errorAt(0, "the section has no contents in this file")
	}
	if s.Type == uint32(elf.SHT_NULL) {
		return nil, s.errorAt(0, "unused")
	}
	b, ok := s.file.bytes(s.Offset, s.rawSize)
	if !ok {
		return nil, s.errorAt(0, "%#x bytes at file offset %#x reach past the end of the file at %#x",
			s.rawSize, s.Offset, len(s.file.data))
	}
	return b, nil
}

func (s *Section) errorAt(offset uint64, reason string, args ...any) *FormatError {
	name := s.Name
	if name == "" {
		name = fmt.Sprintf("section %d", s.index)
	}
	return s.file.formatError(name, offset, reason, args...)
}

// findPacking finds how the section is compressed, and its decompressed size.
func (s *Section) findPacking() {
	legacy := strings.HasPrefix(s.Name, ".zdebug_")
	if s.Type == uint32(elf.SHT_NOBITS) || s.Flags&uint64(elf.SHF_COMPRESSED) == 0 && !legacy {
		return
	}
	b, err := s.stored()
	if err != nil {
		s.packing.method, s.growth = badPacking, newGrowth(s)
		return
	}
	if s.Flags&uint64(elf.SHF_COMPRESSED) != 0 {
		s.packing = headerPacking(b)
	} else if legacy {
		s.packing = legacyPacking(b)
		s.Name = ".debug_" + strings.TrimPrefix(s.Name, ".zdebug_")
	}
	if s.packing.method != notPacked {
		s.Size = s.packing.size
		s.growth = newGrowth(s)
	}
}

// headerPacking reads an Elf64_Chdr (gABI, "Section Compression").
func headerPacking(b []byte) packing {
	if len(b) < chdrSize {
		return packing{method: badPacking}
	}
	p := packing{size: binary.LittleEndian.Uint64(b[8:]), start: chdrSize}
	switch elf.CompressionType(binary.LittleEndian.Uint32(b)) {
	case elf.COMPRESS_ZLIB:
		p.method = zlibPacked
	case elf.COMPRESS_ZSTD:
		p.method = zstdPacked
	default:
		p.method = badPacking
	}
	return p
}

// legacyPacking reads the header that GNU tools wrote before SHF_COMPRESSED:
// "ZLIB" and the size in big-endian order. Without it the section is not
// compressed.
func legacyPacking(b []byte) packing {
	if len(b) < 12 || string(b[:4]) != "ZLIB" {
		return packing{}
	}
	return packing{method: zlibPacked, size: binary.BigEndian.Uint64(b[4:]), start: 12}
}

// linked returns the section that s's sh_link names, nil if there is none.
func (s *Section) linked() *Section {
	if s.link == 0 || int64(s.link) >= int64(len(s.table)) {
		return nil
	}
	return &s.table[s.link]
}
