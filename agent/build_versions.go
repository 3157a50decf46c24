package agent

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
)

// dropWeakVersions takes the versions from a library's needs that only weak references
// have, such as that of _dl_find_object (glibc 2.35). The dynamic linker would refuse the
// library where the version is missing. A reference without a version finds the default
// one or, being weak, nothing (glibc's elf/dl-lookup.c, check_match).
func dropWeakVersions(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := neededVersions(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	symbols := f.Section(".gnu.version")
	if symbols == nil {
		return nil
	}
	indices, err := symbols.Data()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, v := range needed {
		if v.patch == nil {
			continue
		}
		const global = 1 // VER_NDX_GLOBAL
		for at := 0; at+2 <= len(indices); at += 2 {
			if le16(indices[at:]) == v.index {
				v.patch = append(v.patch, bytesAt{int64(symbols.Offset) + int64(at), binary.LittleEndian.AppendUint16(nil, global)})
			}
		}
		for _, b := range v.patch {
			if _, err := file.WriteAt(b.bytes, b.at); err != nil {
				return err
			}
		}
	}
	return file.Close()
}

// bytesAt are bytes and their offset in a file.
type bytesAt struct {
	at    int64
	bytes []byte
}

// neededVersion is an entry of .gnu.version_r (Linux Standard Base core specification 5.0,
// section 10.7.2).
type neededVersion struct {
	library, name string
	// index stands for it in .gnu.version.
	index uint16
	// weak: only weak symbols refer to it.
	weak bool
	// patch takes it out of the list; nil for one that stays.
	patch []bytesAt
}

// neededVersions reads what versions a library needs.
func neededVersions(f *elf.File) ([]*neededVersion, error) {
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	referred := map[string]bool{} // whether a symbol that is not weak needs it
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_WEAK {
			referred[s.Library+" "+s.Version] = true
		}
	}
	section := f.Section(".gnu.version_r")
	if section == nil {
		return nil, nil
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	if int(section.Link) >= len(f.Sections) {
		return nil, fmt.Errorf("%s has no table of strings", section.Name)
	}
	strings, err := f.Sections[section.Link].Data()
	if err != nil {
		return nil, err
	}
	var list []*neededVersion
	for at := 0; at+16 <= len(data); {
		count, aux := int(le16(data[at+2:])), at+int(le32(data[at+8:]))
		library := stringAt(strings, le32(data[at+4:]))
		left, before := count, -1
		for ; count > 0 && aux >= 0 && aux+16 <= len(data); count-- {
			next := le32(data[aux+12:])
			v := &neededVersion{library: library, name: stringAt(strings, le32(data[aux+8:])), index: le16(data[aux+6:])}
			v.weak = !referred[library+" "+v.name]
			list = append(list, v)
			switch {
			case !v.weak || before < 0 && next == 0: // a library's only version stays
				before = aux
			default:
				left--
				// What leads to the next one: the entry before, or the library's for its first.
				link, follows := at+8, uint32(aux-at)+next
				if before >= 0 {
					link, follows = before+12, uint32(aux-before)+next
				}
				if next == 0 {
					follows = 0
				}
				v.patch = []bytesAt{
					{int64(section.Offset) + int64(link), binary.LittleEndian.AppendUint32(nil, follows)},
					{int64(section.Offset) + int64(at) + 2, binary.LittleEndian.AppendUint16(nil, uint16(left))},
				}
			}
			if next == 0 {
				break
			}
			aux += int(next)
		}
		next := int(le32(data[at+12:]))
		if next == 0 {
			break
		}
		at += next
	}
	return list, nil
}

var (
	le16 = binary.LittleEndian.Uint16
	le32 = binary.LittleEndian.Uint32
)

// stringAt is the string at an offset of a table; empty outside of it.
func stringAt(table []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(table)) {
		return ""
	}
	for end := offset; int(end) < len(table); end++ {
		if table[end] == 0 {
			return string(table[offset:end])
		}
	}
	return ""
}
