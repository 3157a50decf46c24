package object

import "debug/elf"

// miniSection holds MiniDebugInfo: an xz-compressed ELF object with the
// symbols that .dynsym lacks (Fedora, Features/MiniDebugInfo).
const miniSection = ".gnu_debugdata"

// findMini unpacks MiniDebugInfo; nil if there is none or it is damaged.
func (l *symbols) findMini() *symbolTable {
	mini, err := l.miniDebugInfo()
	if mini == nil || err != nil {
		return nil
	}
	table := mini.symbols.own().static
	if table == nil {
		return nil
	}
	table.separate, table.shift = true, l.shiftOf(&mini.headers)
	return table
}

// miniDebugInfo returns the object inside .gnu_debugdata, nil without one.
func (l *symbols) miniDebugInfo() (*File, error) {
	s := l.headers.Section(miniSection)
	if s == nil || s.Type == uint32(elf.SHT_NOBITS) {
		return nil, nil
	}
	packed, err := s.Data()
	if err != nil {
		return nil, err
	}
	var data []byte
	fault := l.headers.file.guard(miniSection, func() {
		data, err = decode(func() ([]byte, error) { return unxz(packed) })
	})
	if fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, &FormatError{File: l.headers.file.path, Section: miniSection, Reason: "decompression failed", Err: err}
	}
	return FromBytes(l.headers.file.path+"("+miniSection+")", data)
}
