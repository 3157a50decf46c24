package object

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzFromBytes walks all of an object.
func FuzzFromBytes(f *testing.F) {
	for _, b := range seedObjects() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := FromBytes("fuzz", b)
		if err != nil {
			return
		}
		walk(o)
		if stub, ok := o.SymbolNamed("a@plt"); ok && stub.Name != "a@plt" {
			t.Errorf("asked for a@plt, got %+v", stub)
		}
		if s, ok := o.SymbolNamed("a"); ok && s.Name != "a" {
			t.Errorf("asked for a, got %+v", s)
		}
	})
}

// FuzzDebugLink reads both kinds of link section.
func FuzzDebugLink(f *testing.F) {
	f.Add([]byte("program.debug\x00\x00\x00\x78\x56\x34\x12"))
	f.Add([]byte("../../etc/passwd\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("/usr/lib/debug/.dwz/shared\x00\x01\x02\x03\x04"))
	f.Add([]byte("name without end"))
	f.Fuzz(func(t *testing.T, link []byte) {
		o, err := FromBytes("fuzz", object(section{linkSection, 1, 0, link, 0}, section{altLinkSection, 1, 0, link, 0}))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _, err := o.debugLink()
		if err == nil && bytes.ContainsAny([]byte(name), "/\x00") {
			t.Errorf("the link leads out of the directory: %q", name)
		}
		if path, id, _, err := o.altLink(); err == nil && (path == "" || id == "") {
			t.Errorf("alternate link %q, %q", path, id)
		}
	})
}

// FuzzXZ unpacks MiniDebugInfo.
func FuzzXZ(f *testing.F) {
	f.Add(packedZeros)
	f.Fuzz(func(t *testing.T, b []byte) {
		data, err := decode(func() ([]byte, error) { return unxz(b) })
		if err == nil && !plausible(uint64(len(data)), uint64(len(b))) {
			t.Errorf("%d bytes made %d", len(b), len(data))
		}
	})
}

// FuzzSplitID reads the header of a .dwo unit.
func FuzzSplitID(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 5, 0, 5, 8, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 20, 0, 0, 0, 0, 0, 0, 0, 5, 0, 5, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) { splitID(b) })
}

// packedZeros is "xz --check=crc32" of sixteen zeros.
var packedZeros = []byte{
	0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36,
	0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3,
	0xe0, 0x00, 0x0f, 0x00, 0x06, 0x5d, 0x00, 0x00, 0x6d, 0x3e, 0x4b, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x55, 0x4b, 0xbb, 0xec, 0x00, 0x01, 0x1e, 0x10,
	0x90, 0x9a, 0x70, 0xe9, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x59, 0x5a,
}

// section is a section of a made object.
type section struct {
	name  string
	kind  uint32
	flags uint64
	data  []byte
	link  uint32
}

// object makes a shared object of sections, loaded at the addresses that
// equal their file offsets.
func object(sections ...section) []byte {
	le := binary.LittleEndian
	b := make([]byte, headerSize+programSize)
	names := []byte{0}
	sections = append(sections, section{name: ".shstrtab", kind: 3})
	table := make([]byte, sectionSize)
	for i, s := range sections {
		h := make([]byte, sectionSize)
		le.PutUint32(h, uint32(len(names)))
		names = append(append(names, s.name...), 0)
		if i == len(sections)-1 {
			s.data = names
		}
		le.PutUint32(h[4:], s.kind)
		le.PutUint64(h[8:], s.flags)
		le.PutUint64(h[16:], uint64(len(b)))
		le.PutUint64(h[24:], uint64(len(b)))
		le.PutUint64(h[32:], uint64(len(s.data)))
		le.PutUint32(h[40:], s.link)
		b, table = append(b, s.data...), append(table, h...)
	}
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)
	le.PutUint16(b[18:], 62)
	le.PutUint64(b[32:], headerSize)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[54:], programSize)
	le.PutUint16(b[56:], 1)
	le.PutUint16(b[58:], sectionSize)
	le.PutUint16(b[60:], uint16(len(sections)+1))
	le.PutUint16(b[62:], uint16(len(sections)))
	load := b[headerSize:]
	le.PutUint32(load, 1)
	le.PutUint64(load[32:], uint64(len(b)))
	le.PutUint64(load[40:], uint64(len(b)))
	return append(b, table...)
}

// seedObjects returns objects of a few hundred bytes that reach every reader.
func seedObjects() [][]byte {
	le := binary.LittleEndian
	symbol := func(name uint32, info byte, value, size uint64) []byte {
		s := make([]byte, symbolSize)
		le.PutUint32(s, name)
		s[4], s[6] = info, 1
		le.PutUint64(s[8:], value)
		le.PutUint64(s[16:], size)
		return s
	}
	strings := []byte("\x00a\x00bb@V1\x00__bb\x00")
	symbols := bytes.Join([][]byte{make([]byte, symbolSize), symbol(1, 0x12, 0x80, 8), symbol(3, 0x22, 0x80, 8), symbol(9, 0x10, 0x90, 0)}, nil)
	gnu := le.AppendUint32(nil, 1)
	for _, v := range []uint32{1, 1, 6, 0xffffffff, 0xffffffff, 1, gnuHashOf("a") &^ 1, gnuHashOf("bb") &^ 1, gnuHashOf("__bb") | 1} {
		gnu = le.AppendUint32(gnu, v)
	}
	sysv := []byte{1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}
	note := append([]byte{4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0}, "GNU\x00\xde\xad\xbe\xef"...)
	rela := make([]byte, relaSize)
	le.PutUint32(rela[8:], 7)
	le.PutUint32(rela[12:], 1)
	plt := append([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0}, make([]byte, 7)...)
	chdr := append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0x78, 0x9c, 0x4b, 0x4c, 0x4a, 0x06, 0x00, 0x02, 0x4d, 0x01, 0x27)
	return [][]byte{
		object(section{".dynsym", 11, 2, symbols, 2}, section{".dynstr", 3, 2, strings, 0}, section{".gnu.hash", 0x6ffffff6, 2, gnu, 1},
			section{".rela.plt", 4, 2, rela, 1}, section{".plt", 1, 6, plt, 0}),
		object(section{".symtab", 2, 0, symbols, 2}, section{".strtab", 3, 0, strings, 0}, section{".note", 7, 2, note, 0}),
		object(section{".dynsym", 11, 2, symbols, 2}, section{".dynstr", 3, 2, strings, 0}, section{".hash", 5, 2, sysv, 1}),
		object(section{".debug_info", 1, 0x800, chdr, 0}, section{".zdebug_line", 1, 0, append([]byte("ZLIB\x00\x00\x00\x00\x00\x00\x00\x03"), chdr[24:]...), 0},
			section{linkSection, 1, 0, []byte("x.debug\x00\x01\x02\x03\x04"), 0}),
		object(section{miniSection, 1, 0, packedZeros, 0}),
	}
}
