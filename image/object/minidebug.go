package object

import "debug/elf"

// miniSection holds MiniDebugInfo: an xz-compressed ELF object with the
// symbols that .dynsym lacks (Fedora, Features/MiniDebugInfo).
const miniSection = ".gnu_debugdata"

// findMiniSymbols unpacks MiniDebugInfo; nil if there is none or it is damaged.
func (f *File) findMiniSymbols() *symbolTable {
	mini, err := f.miniDebugInfo()
	if mini == nil || err != nil {
		return nil
	}
	table := mini.own().static
	if table == nil {
		return nil
	}
	table.separate, table.shift = true, f.shiftOf(mini)
	return table
}

// miniDebugInfo returns the object inside .gnu_debugdata, nil without one.
func (f *File) miniDebugInfo() (*File, error) {
	s := f.Section(miniSection)
	if s == nil || s.Type == uint32(elf.SHT_NOBITS) {
		return nil, nil
	}
	packed, err := s.Data()
	if err != nil {
		return nil, err
	}
	var data []byte
	fault := f.guard(miniSection, func() {
		data, err = decode(func() ([]byte, error) { return unxz(packed) })
	})
	if fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, &FormatError{File: f.path, Section: miniSection, Reason: "decompression failed", Err: err}
	}
	return FromBytes(f.path+"("+miniSection+")", data)
}
