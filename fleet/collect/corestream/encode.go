package corestream

import (
	"debug/elf"
	"encoding/binary"
)

// cutOffset marks a piece whose contents the stream lacked.
const cutOffset = 1<<64 - 1

func encode(lists ...[]elf.Prog64) ([]byte, error) {
	var b []byte
	for _, list := range lists {
		for i := range list {
			var err error
			if b, err = binary.Append(b, binary.LittleEndian, &list[i]); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// header returns the ELF header of a core with that many program headers at an offset, and section
// header 0, which has the number if e_phnum cannot hold it.
func header(offset uint64, count int) (b [HeaderBytes]byte, err error) {
	e := elf.Header64{
		Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: offset, Ehsize: headerSize, Phentsize: programSize, Phnum: uint16(min(count, manyPrograms)),
	}
	copy(e.Ident[:], elf.ELFMAG)
	e.Ident[elf.EI_CLASS], e.Ident[elf.EI_DATA], e.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	var section elf.Section64
	if count >= manyPrograms {
		e.Shoff, e.Shnum, e.Shentsize = headerSize, 1, sectionSize
		section.Size, section.Info = 1, uint32(count)
	}
	if _, err := binary.Encode(b[:], binary.LittleEndian, &e); err != nil {
		return b, err
	}
	_, err = binary.Encode(b[headerSize:], binary.LittleEndian, &section)
	return b, err
}
