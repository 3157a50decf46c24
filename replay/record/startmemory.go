package record

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// StartName is the file with the dynamic linker's own memory at the start of the engine. The
// linker runs before the engine. It stores there how long it took, by the time-stamp counter,
// and on which processor it was (init_cpu_features in glibc's sysdeps/x86/cpu-features.c). A
// replay overwrites its linker's memory with the file.
const StartName = "start"

// StartPage is a page of the memory at the start.
type StartPage struct {
	Addr evidence.Addr
	Data [StartPageSize]byte
}

const (
	StartPageSize = 4096
	// MostStartPages is larger than any dynamic linker.
	MostStartPages = 1024
	startRecord    = 8 + StartPageSize // an address and the page
)

// auxBase is AT_BASE of elf.h, the address of the dynamic linker.
const auxBase = 7

// linker is the path of the dynamic linker; empty if there is none.
func (s *Start) Linker() Text {
	for _, a := range s.Auxv {
		if a.Type != auxBase {
			continue
		}
		for i := range s.Mappings {
			if m := &s.Mappings[i]; a.Value >= m.Start && a.Value < m.End {
				return m.Path
			}
		}
	}
	return ""
}

// StartPages returns the pages of StartName; none if the recording has no such file. They are
// in the manifest's mappings of the dynamic linker. It fails with a *eventlog.CutError or a
// *eventlog.CorruptError if the file is not as the recorder wrote it.
func (r *Recording) StartPages() ([]StartPage, error) {
	data, err := r.startData()
	if err != nil {
		return nil, err
	}
	path := r.Manifest.Start.Linker()
	var pages []StartPage
	for at := 0; at < len(data); at += startRecord {
		page := StartPage{Addr: evidence.Addr(binary.LittleEndian.Uint64(data[at:]))}
		copy(page.Data[:], data[at+8:])
		if !r.Manifest.Start.maps(path, page.Addr) {
			return nil, &eventlog.CorruptError{File: StartName, Offset: int64(at), What: fmt.Sprintf("the dynamic linker has no page at %v", page.Addr)}
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// startData returns the contents of StartName, which have whole pages and are as the manifest
// says. Only the manifest of an earlier version cannot tell that pages are missing.
func (r *Recording) startData() ([]byte, error) {
	stored := r.Manifest.StartFile
	data, err := r.stored(StartName, stored, MostStartPages*startRecord)
	if err != nil {
		return nil, err
	}
	if size := int64(len(data)); size%startRecord != 0 {
		return nil, &eventlog.CutError{File: StartName, Offset: size, What: "it ends within a page"}
	}
	return data, checkSum(StartName, stored, data)
}

// maps reports whether a page is part of a file's mappings.
func (s *Start) maps(path Text, addr evidence.Addr) bool {
	for _, m := range s.MappingsOf(path) {
		if path != "" && addr%StartPageSize == 0 && addr >= m.Start && addr < m.End {
			return true
		}
	}
	return false
}

// mappingsOf returns the mappings of an object file, with the pages of its .bss that are not in
// the file: an anonymous mapping directly after a writable one (load_elf_interp in the kernel's
// fs/binfmt_elf.c). The dynamic linkers of Debian 11 and 13 store there how long their
// relocation took.
func (s *Start) MappingsOf(path Text) (list []*Mapping) {
	for i := range s.Mappings {
		m := &s.Mappings[i]
		switch {
		case m.Path == path:
			list = append(list, m)
		case m.Path == "" && m.File == nil && m.Permissions[1] == 'w' && i > 0:
			if last := &s.Mappings[i-1]; last.Path == path && last.End == m.Start && last.Permissions[1] == 'w' {
				list = append(list, m)
			}
		}
	}
	return list
}
