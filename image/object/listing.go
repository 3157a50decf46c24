package object

import "debug/elf"

// Sections returns all sections in the order of the section table.
func (h *headers) Sections() []*Section {
	list := make([]*Section, len(h.sections))
	for i := range h.sections {
		list[i] = &h.sections[i]
	}
	return list
}

// Section returns the first section with the name; nil if there is none.
func (h *headers) Section(name string) *Section {
	for i := range h.sections {
		if h.sections[i].Name == name {
			return &h.sections[i]
		}
	}
	return nil
}

// SectionAt returns the loaded section that covers a link-time address; nil
// if none does.
func (h *headers) SectionAt(vaddr uint64) *Section {
	for i := range h.sections {
		s := &h.sections[i]
		if s.Flags&uint64(elf.SHF_ALLOC) == 0 || vaddr < s.Addr || vaddr-s.Addr >= s.Size {
			continue
		}
		// .tbss has an address but occupies no memory there.
		if s.Type == uint32(elf.SHT_NOBITS) && s.Flags&uint64(elf.SHF_TLS) != 0 {
			continue
		}
		return s
	}
	return nil
}

// sectionOfType returns the first section of a type that has contents here.
func (h *headers) sectionOfType(kind elf.SectionType) *Section {
	for i := range h.sections {
		if h.sections[i].Type == uint32(kind) {
			return &h.sections[i]
		}
	}
	return nil
}

// FilledSection returns the first section with the name that is not empty;
// nil if there is none.
func (h *headers) FilledSection(name string) *Section {
	for i := range h.sections {
		if h.sections[i].Name == name && h.sections[i].Size > 0 {
			return &h.sections[i]
		}
	}
	return nil
}

// HasDWARF reports whether the object itself holds .debug_info.
func (h *headers) HasDWARF() bool {
	s := h.Section(".debug_info")
	return s != nil && s.Type != uint32(elf.SHT_NOBITS) && s.rawSize > 0
}
