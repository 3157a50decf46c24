package gocore

import (
	"encoding/binary"
	"errors"

	"diagnose/evidence"
)

// firstReasons are the first texts of runtime.waitReasonStrings, after an empty
// one.
var firstReasons = []string{"GC assist marking", "IO wait"}

// mostReasons bounds the reasons; Go 1.26 has 46.
const mostReasons = 128

// waitReasons finds the table of the runtime's texts by its first ones: its
// numbers differ between versions.
func (s *stripped) waitReasons() ([]string, error) {
	data, err := readArea(s.memory, s.table.Module.Data)
	if err != nil {
		return nil, err
	}
	text := func(i int) string {
		if i+16 > len(data) {
			return ""
		}
		size := binary.LittleEndian.Uint64(data[i+8:])
		if size == 0 || size > 64 {
			return ""
		}
		t, err := s.bytesAt(evidence.Addr(binary.LittleEndian.Uint64(data[i:])), size)
		if err != nil {
			return ""
		}
		return t
	}
	for i := 0; i+32 <= len(data); i += 8 {
		if int(binary.LittleEndian.Uint64(data[i+8:])) != len(firstReasons[0]) || text(i) != firstReasons[0] || text(i+16) != firstReasons[1] {
			continue
		}
		list := []string{""}
		for len(list) < mostReasons {
			t := text(i)
			if t == "" {
				break
			}
			list, i = append(list, t), i+16
		}
		return list, nil
	}
	return nil, errors.New("the runtime's table of reasons was not found")
}
